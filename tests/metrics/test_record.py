"""``tfmemtop record`` with metrics: real processes, real files, a real training."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests import sparing
from tests.metrics.scraping import address_in, get, labels_in, parsed, scrape, value
from tests.patience import PATIENCE_S, until
from tests.starting import PROGRAM, tfmemtop
from tfmemtop.cli.main import main

pytestmark = pytest.mark.programs

WAITS = ("sh", "-c", "echo up; read line; exit 3")


def done(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return tfmemtop("record", *arguments, cwd=cwd)


@contextmanager
def recorded(
    folder: Path, *options: str, command: tuple[str, ...] = WAITS, program: tuple[str, ...] = (PROGRAM,)
) -> Iterator["subprocess.Popen[str]"]:
    """Run a recorded command during the ``with`` block. It has printed ``up``, and reads a line."""
    with subprocess.Popen(
        [*program, "record", "-o", str(folder / "run.jsonl"), *options, "--", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | sparing.for_command(command),
    ) as running:
        assert running.stdout and running.stdout.readline() == "up\n"
        yield running
        if running.poll() is None:
            running.kill()


def ended(running: "subprocess.Popen[str]") -> tuple[int, str]:
    """Let the command go on to its end. Return its exit code, and the text on stderr."""
    _, said = running.communicate("go on\n", timeout=PATIENCE_S)
    return running.returncode, said


def listening(running: "subprocess.Popen[str]") -> list[str]:
    """Return the addresses at which the process listens."""
    found = psutil.Process(running.pid).net_connections("inet")
    return ["{}:{}".format(*one.laddr) for one in found if one.status == psutil.CONN_LISTEN]


def test_the_page_is_there_while_the_command_runs_and_gone_with_it(tmp_path: Path) -> None:
    sd = tmp_path / "sd.json"
    with recorded(tmp_path, "--metrics", "0", "--metrics-sd", str(sd)) as running:
        url = address_in(sd)
        assert url.startswith("http://127.0.0.1:")
        assert [f"http://{address}/metrics" for address in listening(running)] == [url]
        assert labels_in(sd)["host"] == socket.gethostname()
        samples = until(lambda: found if value(found := scrape(url), "running") == 1 else None)
        assert value(samples, "run_info", run="1", host=socket.gethostname()) == 1
        assert value(samples, "out_of_memory_total") == value(samples, "steps_total") == 0
        code, said = ended(running)
    assert (code, "exporter" in said) == (3, False)
    assert not sd.exists()
    with pytest.raises(OSError):
        get(url)


def test_all_addresses_if_that_is_asked_for(tmp_path: Path) -> None:
    sd = tmp_path / "sd.json"
    with recorded(tmp_path, "--metrics", "0.0.0.0:0", "--metrics-sd", str(sd)) as running:
        assert address_in(sd).startswith(f"http://{socket.gethostname()}:")
        (address,) = listening(running)
        assert address.startswith("0.0.0.0:")


def test_job_and_rank_are_labels_and_name_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0", "SLURM_PROCID": "3", "SLURM_NTASKS": "8"}.items():
        monkeypatch.setenv(name, text)
    with recorded(tmp_path, "--metrics", "0", "--metrics-sd", str(tmp_path / "%j-%r.json")) as running:
        sd = tmp_path / "4711-3.json"
        samples = until(lambda: found if value(found := scrape(address_in(sd)), "running") is not None else None)
        assert value(samples, "running", job="4711", rank="3") == 1
        assert (labels_in(sd)["job"], labels_in(sd)["rank"]) == ("4711", "3")
        ended(running)


@pytest.mark.parametrize("address", ["127.0.0.1", "[::1]"])
def test_a_taken_port_is_refused_before_the_command_starts(tmp_path: Path, address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address.strip("[]"), 0), family=family) as taken:
        port = taken.getsockname()[1]
        found = done("--metrics", f"{address}:{port}", "--", "touch", str(tmp_path / "started"))
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr == f"tfmemtop: no metrics at {address}:{port}: address already in use\n"
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--metrics", "0"], "--metrics 0 takes any free port: --metrics-sd FILE has to tell Prometheus which"),
        (["--metrics", "no.such.host.invalid:9400"], "no metrics at no.such.host.invalid:9400: "),
        (["--metrics", ":9400"], "':9400' has no address; 0.0.0.0:9400 is every address of this machine"),
        (["--metrics", "::1:9400"], "an address with colons needs brackets, as in [::1]:9400"),
        (["--metrics", "0", "--metrics-sd", "/dev/null"], "no metrics in /dev/null: it is not a regular file"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line_before_the_command_starts(
    tmp_path: Path,
    options: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    code = main(["record", *options, "--", "touch", "started"])
    printed, told = capfd.readouterr()
    assert (code, printed) == (2, "")
    assert said in told and told.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_exporter_that_fails_costs_one_line_and_the_command_nothing(tmp_path: Path) -> None:
    sd = tmp_path / "sd.json"
    without = "import sys; sys.modules['tfmemtop.engine.metrics.page'] = None"  # as if the file were damaged
    broken = f"{without}; from tfmemtop.cli.main import main; sys.exit(main(sys.argv[1:]))"
    with recorded(
        tmp_path, "--metrics", "0", "--metrics-sd", str(sd), program=(sys.executable, "-c", broken)
    ) as running:
        url = address_in(sd)
        until(lambda: None if listening(running) else True)
        with pytest.raises(OSError):
            get(url)
        assert sd.exists()  # so that Prometheus reports the target as down
        code, said = ended(running)
    assert code == 3
    (line,) = [line for line in said.splitlines() if "Prometheus" in line]
    assert line.startswith("tfmemtop: no more metrics for Prometheus: the exporter has ended (ModuleNotFoundError: ")
    assert line.endswith("); the run goes on")
    assert not sd.exists()


def test_where_the_recorder_is_killed_the_command_goes_on_and_does_not_hold_the_port(tmp_path: Path) -> None:
    sd = tmp_path / "sd.json"
    with recorded(tmp_path, "--metrics", "0", "--metrics-sd", str(sd)) as running:
        url = address_in(sd)
        (command,) = [one for one in psutil.Process(running.pid).children() if one.name() == "sh"]
        running.kill()
        running.wait(PATIENCE_S)
        with pytest.raises(OSError):
            get(url)
        assert command.is_running()
        assert sd.exists()  # so that Prometheus reports the target as down
        running.communicate("go on\n", timeout=PATIENCE_S)
        command.wait(PATIENCE_S)


def test_a_link_where_a_file_is_to_be_is_replaced_and_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "sd.json").symlink_to(precious)
    files = ("--metrics", "0", "--metrics-sd", str(tmp_path / "sd.json"))
    assert done("-o", str(tmp_path / "r"), *files, "--", "true").returncode == 0
    assert precious.read_text() == "precious"


def test_what_another_has_put_there_is_not_read_and_not_removed(tmp_path: Path) -> None:
    sd = tmp_path / "sd.json"
    files = ("-o", str(tmp_path / "r"), "--metrics", "0", "--metrics-sd", str(sd))
    assert done(*files, "--", "sh", "-c", f"rm {sd}; mkfifo {sd}").returncode == 0
    assert sd.is_fifo()


def test_prometheus_can_read_its_file_as_another_user(tmp_path: Path) -> None:
    sd = tmp_path / "sd.json"
    files = ("-o", str(tmp_path / "r"), "--metrics", "0", "--metrics-sd", str(sd))
    old = os.umask(0o077)
    try:
        found = done(*files, "--", "stat", "-c", "%a", str(sd))
    finally:
        os.umask(old)
    assert found.stdout == "644\n"


def test_a_command_that_cannot_be_started_leaves_no_file(tmp_path: Path) -> None:
    options = ("--metrics", "0", "--metrics-sd", str(tmp_path / "sd.json"))
    assert done("-o", "/dev/null", *options, "--", "no-such-command").returncode == 127
    assert list(tmp_path.iterdir()) == []


def test_the_page_and_its_file_hold_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "hush-in-the-environment")
    folder = tmp_path / "hush-in-the-folder"
    folder.mkdir()
    sd = tmp_path / "sd.json"
    command = ("sh", "-c", "echo up; read line; exit 3", "--token=hush-in-the-command")
    monkeypatch.chdir(folder)
    with recorded(tmp_path, "--metrics", "0", "--metrics-sd", str(sd), command=command) as running:
        url = address_in(sd)
        until(lambda: True if value(scrape(url), "running") == 1 else None)
        texts = [get(url)[1], get(f"{url}?x=1")[1], get(url.removesuffix("metrics"))[1], sd.read_text()]
        pids = {str(one.pid) for one in (psutil.Process(running.pid), *psutil.Process(running.pid).children())}
        ended(running)
    for text in texts:
        assert "hush" not in text and "token" not in text
        assert not {label for _, labels in parsed(text) for _, label in labels} & pids if "# HELP" in text else True


TRAINING = """
import sys
import tensorflow as tf
held = tf.Variable(tf.zeros([1 << 20]))
@tf.function
def step():
    return tf.reduce_sum(held)
step()
print("up", flush=True)
for line in sys.stdin:
    match line.strip():
        case "spike":
            spike = tf.zeros([16 << 20])  # 64 MiB
            del spike
        case "step":
            for _ in range(100):
                step()
        case _:
            break
    print("done", flush=True)
"""


@pytest.mark.tensorflow
def test_a_training_is_scraped_with_its_spike_between_two_scrapes(tmp_path: Path) -> None:
    script, sd = tmp_path / "train.py", tmp_path / "sd.json"
    script.write_text(TRAINING)
    options = ("--cpu-pool", "1G", "--metrics", "0", "--metrics-sd", str(sd))
    with recorded(tmp_path, *options, command=(sys.executable, str(script))) as running:
        url = address_in(sd)
        assert running.stdin and running.stdout

        def tell(word: str) -> None:
            assert running.stdin and running.stdout
            print(word, file=running.stdin, flush=True)
            assert running.stdout.readline() == "done\n"

        def of_pool(name: str) -> float | None:
            return value(scrape(url), name, device="CPU:0", run="1")

        before = until(lambda: used if (used := of_pool("in_use_bytes") or 0) >= 4 << 20 else None)
        assert of_pool("limit_bytes") == 1 << 30
        tell("spike")
        little = before + (1 << 20)
        until(lambda: True if (of_pool("peak_bytes") or 0) >= before + (64 << 20) else None)
        until(lambda: True if (of_pool("in_use_bytes") or 0) <= little else None)
        spike = of_pool("in_use_high_bytes")
        assert spike is not None and spike >= before + (64 << 20)
        tell("step")
        until(lambda: True if (value(scrape(url), "steps_total") or 0) >= 101 else None)
        info = scrape(url)
        assert value(info, "run_info", allocator="bfc") == 1
        assert ended(running)[0] == 0
