"""A real rank, its real exporter and a real Prometheus: the rows that ``tfmemtop cluster`` makes of them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.prometheus import prometheus
from tests.patience import PATIENCE_S
from tfmemtop.cluster.client import Address, PrometheusClient
from tfmemtop.cluster.rows import ClusterRow, Silence
from tfmemtop.cluster.watch import Asking

pytestmark = [pytest.mark.tensorflow, pytest.mark.prometheus]

MIB = 2**20
SCRIPT = """
import sys, tensorflow as tf
with tf.device("CPU:0"):
    held = tf.zeros([200 * 2**18])
print("held", flush=True)
sys.stdin.read()
"""


BY_FILES = """\
global: {scrape_interval: 1s}
scrape_configs:
- job_name: tfmemtop
  honor_labels: true
  file_sd_configs:
  - {files: ['FOLDER/targets-*.json'], refresh_interval: 1s}
"""


@contextmanager
def rank(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """Run rank 3 of job 77, recorded and exported, during the ``with`` block. It holds 200 MiB."""
    own = {"TFMEMTOP_JOB": "77", "TFMEMTOP_RANK": "3", "TFMEMTOP_RANKS": "4", "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-m", "tfmemtop", "record", "--cpu-pool", "1G", "-o", str(folder / "%r.jsonl")]
    command += ["--metrics", "0", "--metrics-sd", str(folder / "targets-%r.json"), "--", sys.executable, "-c", SCRIPT]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **own}
    ) as recorded:
        try:
            assert recorded.stdout is not None and recorded.stdout.readline() == "held\n"
            yield recorded
        finally:
            recorded.send_signal(signal.SIGCONT)
            recorded.terminate()


def until(asking: Asking, seen: Callable[[list[ClusterRow]], bool]) -> list[ClusterRow]:
    end = time.monotonic() + PATIENCE_S
    while True:
        if (trouble := asking.refresh().trouble) is not None:
            raise trouble
        rows = list(asking.seen.rows)
        if asking.seen.complete and seen(rows):
            return rows
        assert time.monotonic() < end, rows
        time.sleep(0.2)


def test_a_rank_whose_exporter_is_silent_and_then_gone(tmp_path: Path) -> None:
    with (
        prometheus(tmp_path, BY_FILES.replace("FOLDER", str(tmp_path))) as server,
        rank(tmp_path) as recorded,
    ):
        # Figures come later than the page. Limits and users are queried once a minute.
        server.wait_until(f"tfmemtop_in_use_high_bytes > {MIB} and on (instance) tfmemtop_limit_bytes")
        asking = Asking(PrometheusClient(Address.of(server.url)), "77")
        (row,) = until(asking, lambda rows: bool(rows and rows[0].user))
        assert (row.job, row.rank, row.gpu, row.device) == ("77", "3", "", "CPU:0")
        assert row.in_use is not None and 200 * MIB <= row.in_use < 300 * MIB
        assert row.limit == 1024 * MIB
        # The script goes on while nothing answers for it. The row must not look healthy.
        recorded.send_signal(signal.SIGSTOP)
        (found,) = until(asking, lambda rows: rows[0].silence is not None)
        assert (found.silence, found.in_use) == (Silence.DOWN, row.in_use)
        recorded.send_signal(signal.SIGCONT)
        # The target is removed when the session ends. The row stays for a while.
        assert recorded.stdin is not None
        recorded.stdin.close()
        recorded.wait(PATIENCE_S)
        until(asking, lambda rows: rows[0].silence is Silence.GONE)
