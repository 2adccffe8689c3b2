"""The manual's Kubernetes files: they are valid, and the pod's command does what the page says.

The pod runs without Kubernetes, as the first process of a container. What Kubernetes adds to it is added here.
"""

import os
import re
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.contained import CHECKPOINT, running
from tests.metrics.scraping import scrape, value
from tests.patience import PATIENCE_S, until
from tfmemtop.events import RunEnd, Session
from tfmemtop.events.recording import read
from tfmemtop.help import topic


def file(kind: str) -> dict[str, Any]:
    """Return the file of the page that describes a *kind* of object, or that has this key."""
    page = topic("kubernetes")
    found = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]
    (one,) = [each for each in found if each.get("kind") == kind or kind in each]
    return one if isinstance(one, dict) else {}


def container() -> dict[str, Any]:
    (one,) = file("Job")["spec"]["template"]["spec"]["containers"]
    return one if isinstance(one, dict) else {}


def of_pod(index: int, name: str, node: str) -> dict[str, str]:
    """Return the variables that the container has in the pod *name*, the one with this *index*, on *node*."""
    fields = {"spec.nodeName": node, "metadata.name": name}
    given = {each["name"]: each for each in container()["env"]}
    values = {
        variable: each["value"] if "value" in each else fields[each["valueFrom"]["fieldRef"]["fieldPath"]]
        for variable, each in given.items()
    }
    return values | {"JOB_COMPLETION_INDEX": str(index)}


def test_the_job_is_valid() -> None:
    schemas = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")
    schemas.validate(file("Job"), schemas.latest_version(), strict=True)


def test_the_jobs_parts_agree() -> None:
    job = file("Job")["spec"]
    pod = job["template"]["spec"]
    assert job["completions"] == job["parallelism"] == int(of_pod(0, "", "")["TFMEMTOP_RANKS"])
    assert {each["name"] for each in container()["volumeMounts"]} == {each["name"] for each in pod["volumes"]}
    (port,) = container()["ports"]
    assert f"0.0.0.0:{port['containerPort']}" in container()["command"]
    (endpoint,) = file("PodMonitor")["spec"]["podMetricsEndpoints"]
    (scraped,) = file("scrape_configs")["scrape_configs"]
    (kept,) = scraped["relabel_configs"]
    assert endpoint["port"] == kept["regex"] == port["name"]
    assert endpoint["honorLabels"] is scraped["honor_labels"] is True


@pytest.mark.programs
def test_the_pod_records_passes_signals_on_and_has_the_programs_exit_code(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    variables = of_pod(3, "train-3-x7k2p", "gpu-17")
    variables["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = [word.replace("$(POD)", variables["POD"]) for word in container()["command"]]
    command = [word.replace("0.0.0.0:9400", f"127.0.0.1:{port}").replace("/runs", str(tmp_path)) for word in command]
    (tmp_path / "train.py").write_text(CHECKPOINT)
    with running(*command, folder=tmp_path, variables=variables) as (process, first):
        assert process.stdout and process.stdout.readline() == "up\n"
        url = f"http://127.0.0.1:{port}/metrics"
        samples = until(lambda: found if value(found := scrape(url), "running") == 1 else None)
        assert value(samples, "running", job="train", rank="3", host="gpu-17") == 1
        first.send_signal(signal.SIGTERM)
        printed, said = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, printed) == (9, "checkpoint\n")
    # Before that, one line says that the home folder of that user cannot be used.
    assert said.splitlines()[-1].startswith("tfmemtop: rank 3 of 4: ") and said.count("\n") <= 2
    (
        session,
        *_,
    ) = events = list(read(tmp_path / "train-3-x7k2p-rank3.jsonl.gz").events())
    assert isinstance(session, Session) and session.placement is not None
    place = session.placement
    assert (place.job, place.rank, place.ranks, place.host) == ("train", 3, 4, "gpu-17")
    assert [event.exit_code for event in events if isinstance(event, RunEnd)] == [9]
    until(lambda: not first.is_running())
