"""A real Prometheus, configured as in the manual."""

import json
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.prometheus import Prometheus, prometheus
from tests.metrics.scraping import address_in, events_until, served, watched
from tests.metrics.test_record import ended, recorded
from tests.patience import until
from tests.starting import ran
from tfmemtop import help
from tfmemtop.cli.dashboard import DASHBOARD
from tfmemtop.cli.parser import parse
from tfmemtop.engine.metrics.families import HELP, PREFIX

POOL_LABELS = ("host", "uuid", "device", "run", "job", "rank")
PAGE = help.topic("metrics") + help.topic("alerts")


def queries() -> list[str]:
    """Return all queries of the dashboard, with Grafana's variables in them."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed (Debian: prometheus)")


def blocks(marked: str) -> list[str]:
    """Return the pieces of YAML in the manual that have *marked* in their first line."""
    return [block for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.S) if marked in block.partition("\n")[0]]


def every_second(configuration: str) -> str:
    """Return the *configuration* of the manual, with which Prometheus scrapes every second."""
    return configuration.replace("interval: 15s", "interval: 1s")


@pytest.mark.programs
@needs("prometheus")
def test_every_query_of_the_dashboard_and_every_rule_on_two_recorded_sessions(tmp_path: Path) -> None:
    """One session was recorded on a machine without a GPU. A session recorded on a GPU has the other figures."""
    (by_file,) = [block for block in blocks("prometheus.yml") if "file_sd_configs" in block]
    (rules,) = blocks("tfmemtop-rules.yml")
    (tmp_path / "rules.yml").write_text(rules)
    gpu, cpu = (watched(events_until(f"{name}.jsonl", 0.6)) for name in ("h100-transformer", "cpu-demo"))
    configuration = by_file.replace("/var/lib/tfmemtop", str(tmp_path)) + f'rule_files: ["{tmp_path}/rules.yml"]\n'
    with served(gpu) as on_gpu, served(cpu) as on_cpu, prometheus(tmp_path, every_second(configuration)) as server:
        targets = [page.split("/")[2] for page in (on_gpu, on_cpu)]
        for number, target in enumerate(targets):
            (tmp_path / f"{number}.json").write_text(json.dumps([{"targets": [target]}]))
        until(lambda: True if len(server.query("tfmemtop_in_use_bytes")) == 2 else None)
        # A rate needs two scrapes.
        until(lambda: server.query("rate(tfmemtop_steps_total[1m])") or None)
        for query in queries():
            filled = query.replace("$__rate_interval", "1m")
            filled = re.sub(r'"\$(host|job|rank)"', '".*"', filled)
            assert "$" not in filled
            assert server.query(filled) or "tfmemtop_finding" in query, query
        (run,) = server.query(f'tfmemtop_run_info{{instance="{targets[1]}"}}')
        assert run["metric"]["job"] == "tfmemtop"  # Prometheus' own name, as the run has no job
        assert not [one for one in run["metric"] if one.startswith("exported_")]
        until(lambda: True if {rule["health"] for rule in rules_of(server)} == {"ok"} else None)
        assert {rule["name"] for rule in rules_of(server)} == set(re.findall(r"alert: (\w+)", rules))
        (tmp_path / "1.json").unlink()  # as at the end of a session
        until(lambda: True if len(server.query("tfmemtop_in_use_bytes")) == 1 else None)


def rules_of(server: Prometheus) -> list[dict[str, Any]]:
    return [rule for group in server.api("rules")["groups"] for rule in group["rules"]]


@pytest.mark.programs
@needs("prometheus")
def test_job_and_rank_stay_theirs_and_a_machine_that_is_down_keeps_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0", "SLURM_PROCID": "3", "SLURM_NTASKS": "8"}.items():
        monkeypatch.setenv(name, text)
    (by_file,) = [block for block in blocks("prometheus.yml") if "file_sd_configs" in block]
    configuration = by_file.replace("/var/lib/tfmemtop", str(tmp_path))
    with recorded(tmp_path, "--metrics", "0", "--metrics-sd", str(tmp_path / "%j-%r.json")) as running:
        address_in(tmp_path / "4711-3.json")
        with prometheus(tmp_path, every_second(configuration)) as server:
            (found,) = until(lambda: server.query('tfmemtop_running{job="4711",rank="3"}') or None)
            assert not [one for one in found["metric"] if one.startswith("exported_")]
            running.send_signal(signal.SIGSTOP)
            until(lambda: server.query('up{job="4711",rank="3"} == 0') or None)
            running.send_signal(signal.SIGCONT)
            assert ended(running)[0] == 3
            until(lambda: True if not server.query('up{job="4711"}') else None)


@pytest.mark.programs
@needs("promtool")
def test_promtool_takes_the_manuals_files_and_its_rules_fire(tmp_path: Path) -> None:
    for number, configuration in enumerate(blocks("prometheus.yml")):
        (tmp_path / f"{number}.yml").write_text(configuration)
        promtool(tmp_path, "check", "config", f"{number}.yml")
    (rules,) = blocks("tfmemtop-rules.yml")
    (tmp_path / "rules.yml").write_text(rules)
    promtool(tmp_path, "check", "rules", "rules.yml")
    (tmp_path / "test.yml").write_text(json.dumps(situations()))
    promtool(tmp_path, "test", "rules", "test.yml")


def promtool(folder: Path, *arguments: str) -> None:
    found = ran(["promtool", *arguments], cwd=folder)
    assert found.returncode == 0, found.stdout + found.stderr


OF = 'host="h",instance="i",job="tfmemtop",run="1"'


def situations() -> dict[str, Any]:
    """Return promtool's tests: for each rule a case in which it fires, and one in which it must not.

    They are written as JSON, which is also valid YAML.
    """
    in_use, limit = (f'tfmemtop_{name}_bytes{{{OF},device="GPU:0"}}' for name in ("in_use_high", "limit"))
    found = f'tfmemtop_finding{{{OF},key="KEY",severity="SEVERITY"}}'
    used, total, busy = (
        f'tfmemtop_device_{name}{{{OF},uuid="GPU-1"}}'
        for name in ("memory_used_bytes", "memory_total_bytes", "utilization_ratio")
    )
    leak, failed, idle = (
        found.replace("KEY", key).replace("SEVERITY", severity)
        for key, severity in (("leak", "warning"), ("allocation_failed", "error"), ("cached_but_idle", "info"))
    )
    ran_out, running, steps, up = (
        f"tfmemtop_out_of_memory_total{{{OF}}}",
        f"tfmemtop_running{{{OF}}}",
        f"tfmemtop_steps_total{{{OF}}}",
        'up{instance="i",job="tfmemtop"}',
    )
    firing: dict[str, tuple[list[tuple[str, str]], str, dict[str, str], str]] = {
        "TensorFlowOutOfMemory": (
            [(ran_out, "0 0 0 1x10")], "4m", {}, "An allocation failed on h, job tfmemtop, rank ",
        ),
        "TensorFlowPoolNearlyFull": (
            [(in_use, "97x20"), (limit, "100x20")], "5m", {"device": "GPU:0"}, "97% of the limit in use on h GPU:0",
        ),
        "TensorFlowLeak": (
            [(leak, "1x20")], "5m", {"key": "leak", "severity": "warning"}, "Memory in use keeps rising on h ",
        ),
        "TensorFlowErrorFound": (
            [(failed, "1x20")], "5m", {"key": "allocation_failed", "severity": "error"},
            "allocation_failed on h; tfmemtop help findings explains it",
        ),
        "TensorFlowStalled": (
            [(running, "1x40"), (steps, "7x40")], "30m", {},
            "No step for a quarter of an hour on h, job tfmemtop, rank ",
        ),
        "GpuHeldAndIdle": (
            [(used, "90x90"), (total, "100x90"), (busy, "0x90")], "80m", {"uuid": "GPU-1"},
            "GPU GPU-1 of h is held and idle",
        ),
        "TfmemtopDown": ([(up, "0x20")], "5m", {}, "No answer from tfmemtop at i"),
    }  # fmt: skip
    calm = [
        *((ran_out, "0x90"), (in_use, "90x90"), (limit, "100x90"), (idle, "1x90"), (running, "1x90"), (up, "1x90")),
        *((steps, "0+5x90"), (used, "90x90"), (total, "100x90"), (busy, "0.9x90")),
    ]
    spike = [(in_use, "50 97x2 50x80"), (limit, "100x90")]  # a short one, which the figure shows for two minutes
    tests = []
    for name, (series, at, labels, summary) in firing.items():
        of_run = {} if name == "TfmemtopDown" else {"host": "h", "run": "1"}
        fired = {"instance": "i", "job": "tfmemtop", **of_run, **labels}
        told = {"exp_labels": fired, "exp_annotations": {"summary": summary}}
        tests += [case(series, at, name, [told]), case(calm, at, name, [])]
    tests.append(case(spike, "3m", "TensorFlowPoolNearlyFull", []))
    return {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": tests}


def case(series: list[tuple[str, str]], at: str, name: str, fired: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "interval": "1m",
        "input_series": [{"series": one, "values": values} for one, values in series],
        "alert_rule_test": [{"eval_time": at, "alertname": name, "exp_alerts": fired}],
    }


KINDS, UNITS = {"stat", "table", "timeseries"}, {"none", "bytes", "percentunit", "watt", "celsius"}
"""The dashboard's panels and units. Grafana 13.2 knows them (``@grafana/schema``, ``@grafana/data``)."""


def test_grafana_can_import_the_dashboard_and_knows_its_parts_which_fit_together(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What type-checking against ``@grafana/schema`` (an npm package) found, as far as it can be checked without."""
    call = parse(["dashboard"])
    assert call.run(call.arguments) == 0
    printed = json.loads(capsys.readouterr().out)
    (source, *variables) = printed["templating"]["list"]
    assert (source["type"], source["query"]) == ("datasource", "prometheus")
    chosen = {"type": "prometheus", "uid": f"${{{source['name']}}}"}
    assert isinstance(printed["schemaVersion"], int)
    assert all((each["type"], each["datasource"]) == ("query", chosen) for each in variables)
    known = {each["name"] for each in variables} | {"__rate_interval"}
    assert len({panel["id"] for panel in printed["panels"]}) == len(printed["panels"])
    for panel in printed["panels"]:
        assert panel["type"] in KINDS and panel["fieldConfig"]["defaults"]["unit"] in UNITS
        assert panel["datasource"] == chosen
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        for target in panel["targets"]:
            assert target["datasource"] == chosen
            assert set(re.findall(r"\$(\w+)", target["expr"])) <= known
            kept = re.match(r"(?:sum|max) by \(([^)]*)\)", target["expr"])
            labels = set(kept[1].split(", ") if kept else POOL_LABELS)
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= labels, target
        for change in panel.get("transformations", ()):
            renamed = [name for name in change["options"]["renameByName"] if change["options"]["excludeByName"][name]]
            assert (change["id"], renamed) == ("organize", [])
    named = {name for query in queries() for name in re.findall(rf"{PREFIX}\w+", query)}
    assert named and named <= {PREFIX + name for name in HELP}
    assert all(panel["title"] and panel["description"] for panel in printed["panels"])
    places = [panel["gridPos"] for panel in printed["panels"]]
    cells = [(at["x"] + x, at["y"] + y) for at in places for x in range(at["w"]) for y in range(at["h"])]
    assert len(set(cells)) == len(cells)  # no panel lies on another
    assert max(x for x, _ in cells) == 23
