"""With a real Prometheus: the overview, and a Prometheus that is stopped and started again."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import json

from tests.cluster.conftest import Monitored
from tests.cluster.exporters import GIB, Host, Rank, exporting
from tests.cluster.prometheus import configuration, prometheus
from tests.patience import PATIENCE_S
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


def test_targets_that_are_down_may_have_any_names(monitored: Monitored) -> None:
    # The query's subqueries look at whole seconds only. Wait until there is a sample at one.
    monitored.prometheus.wait_until('count_over_time(timestamp(tfmemtop_in_use_bytes{host="node1"})[2m:1s])')
    down = ["node1:9", 'a.b"c\\d|(x)[y]{z}^$*+? é', *(f"another-{number}:9100" for number in range(400))]
    found = client(monitored).query(Queries().slow(down)).series()
    was = [one.metric for one in found if one.metric["means"].startswith("was")]
    assert {labels["means"] for labels in was} == {
        "was",
        *(f"was_{it}" for it in ("run", "limit", "total", "used", "info")),
    }
    assert {labels["instance"] for labels in was if labels["means"] == "was"} == {"node1:9"}


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
        assert (later.silence, later.rank, later.job) == (Silence.DOWN, "1", "42")
        assert (later.in_use, later.used, later.gpu) == (20 * GIB, 32 * GIB, known.gpu)
        assert later.user == "ada"
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
        return subprocess.run([*command, *options], capture_output=True, text=True, check=False, timeout=PATIENCE_S)

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
    done = subprocess.run(checked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


HISTORY_S, STEP_S = 1800, 15


def history(path: Path, now: int) -> None:
    """Write the figures of the half hour before *now* (seconds since 1970) to *path*, as OpenMetrics text.

    One GPU leaks, one warms up, one swings, one is full and idle. Of the five ranks of job 51, one is slow and one
    counts no steps.
    """
    lines = []
    courses: dict[str, Callable[[int], int]] = {
        "leaks": lambda t: 20 * GIB + t * 4 * 2**20 + (t // STEP_S % 2) * GIB,
        "warms": lambda t: 20 * GIB + min(t, 1000) * 8 * 2**20,
        "swings": lambda t: 20 * GIB + abs(t % 900 - 450) * 8 * 2**20,
        "idle": lambda t: 20 * GIB,
    }
    for metric in ("in_use_bytes", "device_memory_used_bytes", "device_memory_total_bytes", "device_utilization_ratio"):
        lines.append(f"# TYPE tfmemtop_{metric} gauge")
        for host, course in courses.items():
            labels = f'instance="{host}:9",job="{host}",host="{host}",uuid="GPU-{host}"'
            own = labels + (',device="GPU:0",run="1",rank="0"' if metric == "in_use_bytes" else "")
            for t in range(0, HISTORY_S, STEP_S):
                value = {
                    "in_use_bytes": course(t),
                    "device_memory_used_bytes": (79 if host == "idle" else 60) * GIB,
                    "device_memory_total_bytes": 80 * GIB,
                    "device_utilization_ratio": 0.02 if host == "idle" else 0.9,
                }[metric]
                lines.append(f"tfmemtop_{metric}{{{own}}} {value} {now - HISTORY_S + t}")
    lines.append("# TYPE tfmemtop_steps counter")
    for rank, pace in enumerate((4.0, 4.0, 3.0, 4.0, 0.0)):  # the last rank counts no steps
        own = f'instance="step{rank}:9",job="51",host="step{rank}",uuid="GPU-{rank}",run="1",rank="{rank}"'
        times = range(0, HISTORY_S, STEP_S)
        lines += [f"tfmemtop_steps_total{{{own}}} {pace * t} {now - HISTORY_S + t}" for t in times]
    lines.append("# TYPE tfmemtop_in_use_high_bytes gauge")
    for rank in range(5):
        own = (
            f'instance="step{rank}:9",job="51",host="step{rank}",uuid="GPU-{rank}",device="GPU:0",run="1",rank="{rank}"'
        )
        lines.append(f"tfmemtop_in_use_high_bytes{{{own}}} {GIB} {now - STEP_S}")
    path.write_text("\n".join([*lines, "# EOF", ""]))


@pytest.mark.prometheus
def test_a_leak_and_idleness_are_seen_in_figures_alone(tmp_path: Path) -> None:
    history(tmp_path / "history", int(time.time()))
    files = [str(tmp_path / name) for name in ("history", "data")]
    blocks = ["promtool", "tsdb", "create-blocks-from", "openmetrics", *files]
    subprocess.run(blocks, check=True, capture_output=True)
    with exporting([]) as exporters, prometheus(tmp_path, configuration(exporters.port, [])) as server:
        asking = Asking(PrometheusClient(Address.of(server.url)))
        wrong = {row.host: row.wrong for row in complete(asking).rows}
        assert wrong["leaks"].startswith("leak ")
        rate = next(row.rising for row in asking.seen.rows if row.host == "leaks")
        assert rate == pytest.approx(4 * 2**20, rel=0.1)
        assert (wrong["warms"], wrong["swings"], wrong["idle"]) == ("", "", "full, idle")
        assert {host: said for host, said in wrong.items() if host.startswith("step") and said} == {
            "step2": "25% slower"
        }


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
