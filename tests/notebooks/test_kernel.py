"""A kernel that is a session: it behaves as without tfmemtop, and each start of it is recorded."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.notebook import Notebook
from tests.patience import PATIENCE_S, until
from tests.starting import PROGRAM, ran
from tfmemtop import events as ev
from tfmemtop.cli import main as cli
from tfmemtop.engine.sources.processes import find, is_alive
from tfmemtop.engine.stream.folders import SessionInfo
from tfmemtop.engine.stream.kept_sessions import place_for
from tfmemtop.events.recording import read


@pytest.fixture(scope="module")
def notebook(jupyter: Path) -> Iterator[Notebook]:
    made = Notebook(cwd=jupyter)
    yield made
    if made.manager.has_kernel:
        made.end(now=True)


def _ended(session: SessionInfo) -> ev.RunEnd:
    """Wait until the engine of *session* has ended, and return how its kernel ended."""
    until(lambda: not psutil.pid_exists(session.pid))
    (end,) = [event for event in read(place_for(session.id)).events() if isinstance(event, ev.RunEnd)]
    return end


_SELF = """
import json, os, signal, stat, sys, psutil
print(json.dumps({
    "pid": os.getpid(), "parent": os.getppid(), "group": os.getpgid(0), "session": os.getsid(0), "cwd": os.getcwd(),
    "children": [each.name() for each in psutil.Process().children(recursive=True)],
    "stdin": stat.S_IFMT(os.fstat(0).st_mode), "open": sorted(map(int, os.listdir("/proc/self/fd")))[:3],
    "signals": {n: str(signal.getsignal(n)) for n in sorted(signal.valid_signals())},
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])), "path": sys.path[:3], "argv": sys.argv[:1],
    "limits": psutil.Process().rlimit(psutil.RLIMIT_NOFILE), "umask": os.umask(0o22),
}))
"""


def test_the_kernel_is_the_process_that_jupyter_started_and_is_as_without_us(notebook: Notebook, jupyter: Path) -> None:
    plain = Notebook("python3", cwd=jupyter)
    try:
        alone, ours = (each.run(_SELF).replace(str(each.pid), "PID") for each in (plain, notebook))
    finally:
        plain.end()
    assert ours == alone
    assert '"pid": PID' in ours and '"group": PID' in ours


def test_the_session_is_listed_and_an_interrupt_is_the_cells(notebook: Notebook) -> None:
    session = notebook.session()
    listed = ran([PROGRAM, "ls"], check=True).stdout
    assert f"{session.id} " in listed and "ipykernel_launcher" in listed and "running" in listed
    cell = "import time; print('sleeps'); time.sleep(600)"
    assert notebook.run(cell, printed=notebook.manager.interrupt_kernel).startswith("sleeps\nKeyboardInterrupt")
    assert notebook.run("print(6 * 7)") == "42\n"


def test_each_restart_is_a_session_with_a_recording_of_its_own(notebook: Notebook) -> None:
    first = notebook.session()
    notebook.restart()
    second = notebook.session()
    assert second.id != first.id
    # The exit code is not known if the manager has collected the status before the engine. The same holds for a signal.
    assert _ended(first).exit_code in (0, None)
    runs = [event for event in read(place_for(first.id)).events() if isinstance(event, ev.Run)]
    assert [run.kernel for run in runs] == [notebook.manager.connection_file]
    # If the manager kills the process that it started, no other process remains.
    os.kill(notebook.pid, signal.SIGKILL)
    end = _ended(second)
    assert (end.exit_code, end.signal) in ((None, signal.SIGKILL), (None, None))
    assert place_for(first.id).stat().st_size and place_for(second.id).stat().st_size
    notebook.restart()
    engine = notebook.session().pid
    process = find(engine)
    assert process is not None
    for each in (process.ppid, engine):  # the first is the keeper; a script's terminal would end with it
        os.kill(each, signal.SIGKILL)
    until(lambda: not is_alive(engine))
    assert notebook.run("print(6 * 7)") == "42\n"


def test_a_kernel_that_cannot_be_watched_starts_all_the_same(jupyter: Path) -> None:
    install = [PROGRAM, "kernel", "install", "--name", "refused", "--python", sys.executable]
    subprocess.run(install, check=True, timeout=PATIENCE_S)
    spec = jupyter / "data" / "kernels" / "refused" / "kernel.json"
    # No machine has so many GPUs. It is as if the kernelspec was installed on a machine with more GPUs.
    spec.write_text(spec.read_text().replace('"start",', '"start", "--gpus=999",'))
    log = jupyter / "log"
    with log.open("wb") as stderr:
        notebook = Notebook("refused", stderr=stderr)
        try:
            assert notebook.run("print(6 * 7)") == "42\n"
        finally:
            notebook.end()
    assert "this kernel runs without tfmemtop: there is no GPU 999" in log.read_text()
    listed = ran([PROGRAM, "kernel", "list"], check=True).stdout
    assert [line.split()[0] for line in listed.splitlines()] == ["refused", "tfmemtop"]
    subprocess.run([PROGRAM, "kernel", "remove", "--name", "refused"], check=True)
    assert not spec.parent.exists()


@pytest.mark.programs
@pytest.mark.parametrize(
    ("name", "title", "hidden"),
    [
        ("small", "Python (small)", False),
        ("python3.12", "Python (small)", True),
        ("small", "Python 3 (small)", True),
        ("my-python3", "My Python 3", False),
    ],
)
def test_a_kernel_that_vs_code_does_not_list_is_installed_with_a_warning(
    name: str, title: str, hidden: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--name", name, "--display-name", title, "--prefix", str(tmp_path), "--python", sys.executable]
    assert cli.main(["kernel", "install", *options]) == 0
    assert (tmp_path / "share" / "jupyter" / "kernels" / name / "kernel.json").exists()
    said = capsys.readouterr().err.splitlines()
    assert len(said) == hidden and all(f'VS Code does not list the kernel "{title}"' in line for line in said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["install", "--python", "/bin/true"], "/bin/true does not run"),
        (["install", "--name", "a b"], "not a name for a kernel"),
        (["remove", "--name", "python3"], "has installed no kernel 'python3'"),
        (["start"], "needs the kernel's command"),
        (["install", "--", "python"], "takes no command"),
    ],
)
def test_what_cannot_be_installed_is_refused_in_one_line(jupyter: Path, arguments: list[str], said: str) -> None:
    done = ran([PROGRAM, "kernel", *arguments])
    assert done.returncode in (1, 2) and done.stderr.count("\n") == 1 and said in done.stderr
