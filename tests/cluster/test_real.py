"""With a real Prometheus: the overview, and a Prometheus that is stopped and started again."""

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import json

from tests.cluster.conftest import Monitored
from tests.cluster.exporters import GIB, Host, Rank, exporting
from tests.cluster.prometheus import configuration, prometheus
from tests.starting import ran
from tfmemtop.cluster.client import Address, PrometheusClient, Queries
from tfmemtop.cluster.rows import Silence
from tfmemtop.cluster.watch import Asking, Seen
from tfmemtop.help import topic

pytestmark = pytest.mark.programs

LOGIN = "ada:test"


def client(monitored: Monitored) -> PrometheusClient:
    return PrometheusClient(Address.of(monitored.prometheus.url, login=LOGIN))


def complete(asking: Asking) -> Seen:
    """Refresh until each query has been answered, and return the result."""
    while not asking.seen.complete:
        if (trouble := asking.refresh().trouble) is not None:
            raise trouble
    return asking.seen


def told(seen: Seen) -> dict[str, str]:
    return {f"{row.host}:{row.rank}": row.wrong for row in seen.rows}


def test_the_overview_says_what_is_wrong_first(monitored: Monitored) -> None:
    seen = complete(Asking(client(monitored)))
    assert told(seen) == {
        "node4:0": "full soon 99%",
        "node3:3": "leak",
        "node2:2": "outlier +8.0G",
        **{"node5:": "", "node0:0": "", "node1:1": ""},
    }
    row = next(row for row in seen.rows if row.rank == "1")
    assert (row.job, row.user, row.gpu, row.model, row.busy) == ("42", "ada", "0", "NVIDIA H100", 0.9)
    assert (row.in_use, row.limit, row.used, row.total) == (22 * GIB, 76 * GIB, 32 * GIB, 80 * GIB)
    assert seen.totals == "6 rows on 6 hosts, 2 jobs; something is wrong with 3"


@pytest.mark.parametrize("job", [None, "42", 'x"} or up{a="'])
def test_every_query_is_understood(monitored: Monitored, job: str | None) -> None:
    for query in (Queries(job).fast(), Queries(job).slow()):
        client(monitored).query(query)


def test_one_job_alone(monitored: Monitored) -> None:
    assert set(told(complete(Asking(client(monitored), "43")))) == {"node4:0"}
    assert told(complete(Asking(client(monitored), "none"))) == {}


def test_a_target_that_is_down_says_so_also_to_who_comes_later(monitored: Monitored) -> None:
    early = Asking(client(monitored))
    complete(early)
    host = monitored.exporters.hosts["node1"]
    host.silent = True
    try:
        monitored.prometheus.wait_until('up{instance="node1:9"} == 0')
        early.refresh()
        known = next(row for row in early.seen.rows if row.host == "node1")
        assert known.silence is Silence.DOWN and known.in_use == 22 * GIB
        later = next(row for row in complete(Asking(client(monitored))).rows if row.host == "node1")
        assert (later.silence, later.in_use) == (Silence.DOWN, None)
    finally:
        host.silent = False
    monitored.prometheus.wait_until('up{instance="node1:9"} == 1')
    early.refresh()
    assert told(early.seen)["node1:1"] == ""


def test_printed_once_with_the_login_in_a_file(monitored: Monitored, tmp_path: Path) -> None:
    login = tmp_path / "login"
    login.write_text(LOGIN + "\n")

    def printed(*options: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "tfmemtop", "cluster", "--prometheus", monitored.prometheus.url, "--once"]
        return ran([*command, *options])

    done = printed("--login-file", str(login), "--json", "--job", "42")
    assert (done.returncode, done.stderr) == (0, "")
    rows = [json.decode(line) for line in done.stdout.splitlines()]
    assert [row["rank"] for row in rows] == ["3", "2", "0", "1"]
    assert rows[0]["wrong"] == [{"kind": "leaking", "key": "leak"}]
    assert rows[1]["wrong"] == [{"kind": "outlier", "size": 8 * GIB, "median": 22 * GIB}]
    login.write_text("ada:open-sesame\n")
    done = printed("--login-file", str(login))
    assert done.returncode == 1
    assert done.stderr == (
        f"tfmemtop: Prometheus at {monitored.prometheus.url}: it refuses the user, password or token (HTTP 401)\n"
    )


@pytest.mark.prometheus
def test_the_manuals_file_for_prometheus_is_valid(tmp_path: Path) -> None:
    page = topic("cluster")
    (tmp_path / "prometheus.yml").write_text(page.partition("```yaml\n")[2].partition("```")[0])
    checked = ["promtool", "check", "config", str(tmp_path / "prometheus.yml")]
    done = ran(checked)
    assert done.returncode == 0, done.stderr


@pytest.mark.prometheus
def test_a_rank_that_begins_later_has_its_limit_and_user_at_once(tmp_path: Path) -> None:
    """Limits and users are asked for once a minute, and also when there is a new rank."""
    host = Host("node", [Rank(rank="0")], gpus=2)
    with exporting([host]) as exporters, prometheus(tmp_path, configuration(exporters.port, ["node"])) as server:
        server.wait_until("tfmemtop_run_info", 1)
        asking = Asking(PrometheusClient(Address.of(server.url)))
        complete(asking)
        host.ranks.append(Rank(gpu=1, rank="1", user="grace"))
        server.wait_until("tfmemtop_run_info", 2)
        seen = asking.refresh()
    row = next(row for row in seen.rows if row.rank == "1")
    assert (row.user, row.limit) == ("grace", 76 * GIB)
