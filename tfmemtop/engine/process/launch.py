"""Starts an engine, and makes the environment of the script that the engine starts.

The messages to and from the process that starts an engine are pickled: both processes are ours. The variables in the
script's environment bring the hook in, tell it how to read, and request XLA's reports.
"""

import os
import pickle
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import msgspec

from tfmemtop import boot
from tfmemtop.events import XlaMissing
from tfmemtop.failure import Refusal
from tfmemtop.settings import INTERVAL_S, Settings


class Kernel(msgspec.Struct, frozen=True, kw_only=True):
    """A Jupyter kernel: the process that becomes it, its connection file, and the file of its notebook, if known.

    ``shared`` is a text that is the same for all starts of this kernel. ``start`` is the number of this start.
    ``earlier`` are the sessions of the newest starts before it.
    """

    pid: int
    connection: str
    shared: str
    notebook: str | None = None
    start: int = 1
    earlier: tuple[str, ...] = ()


class Export(msgspec.Struct, frozen=True, kw_only=True):
    """The page with the session's metrics, at ``address`` and ``port`` (0: any free port).

    ``discovery`` is the path of the file in which Prometheus finds the address of the page.
    """

    address: str = "127.0.0.1"
    port: int = 0
    discovery: str | None = None


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """The message with which an engine is started.

    With an empty *argv* the engine only watches; with *attach*, it watches the process of that number. Texts from the
    user's system (``argv``, ``cwd``, ``environment``, ``record``, the path in ``export``) are as :func:`os.fsdecode`
    returns them: bytes that are not UTF-8 are surrogates. ``ignored`` and ``blocked`` are numbers of signals that are
    ignored and blocked in the script. With ``kernel``, the process of that kernel becomes the script by itself, in the
    environment that :class:`Launched` contains.
    """

    argv: list[str]
    cwd: str
    environment: dict[str, str]  # the user's own, pristine
    settings: Settings = Settings()
    interval_s: float = INTERVAL_S  # between two readings of the hook
    holders_interval_s: float = 60.0  # between two windows of allocations, 0: none
    record: str | None = None  # path of a recording to write
    keep: bool = False  # make the recording that is kept of every session
    probe: bool = True  # use the probe to read the pools
    columns: int = 80
    rows: int = 24
    ignored: list[int] = []
    blocked: list[int] = []
    attach: int | None = None
    kernel: Kernel | None = None
    on_end: str = ""  # a line for sh when a run has ended
    on_oom: str = ""  # likewise at its first out-of-memory error
    export: Export | None = None
    task: bool = False  # a Slurm step or a container ends with the process that starts this, which waits for the script
    first: bool = False  # the process that starts this is the first one of a container, or in the session of that

    @property
    def has_terminal(self) -> bool:
        """Whether a script runs in the engine's terminal. A kernel has its standard streams from Jupyter."""
        return bool(self.argv) and self.kernel is None

    @property
    def ends_with_screen(self) -> bool:
        """Whether nothing of the session outlives its screen. Then its engine may run in the screen's process."""
        return not (self.argv or self.kernel or self.record or self.export) and self.attach is None


class Launched(msgspec.Struct, frozen=True, kw_only=True):
    """The engine's answer: where to reach it, or why it could not start: the ``error``, and an exit code for it.

    ``environment`` is for a process that becomes the script by itself; its texts are as those of :class:`Launch`.
    """

    id: str = ""
    socket: str = ""
    output_path: str | None = None
    error: str | None = None
    exit_code: int = 1
    environment: dict[str, str] | None = None


class StartError(Refusal):
    """The script or its engine could not be started. The message is one line without a full stop.

    ``exit_code`` is a shell's code for commands, 2 for a mistake in the user's request, 1 for all else.
    """


def without_engine(detail: str = "") -> Launched:
    """Return the answer for an engine that could not be started, because of *detail*."""
    return Launched(error=f"the engine cannot be started: {detail or 'it ended'}")


def readable(text: str) -> str:
    """Return *text*, which :func:`os.fsdecode` made, as valid UTF-8. Other bytes are written as ``\\xff``."""
    return os.fsencode(text).decode("utf-8", "backslashreplace")


def start_apart(launch: Launch) -> Launched:
    """Start an engine like :func:`start`, but not as a child of this process, which will become another program.

    Call this before there are other threads.
    """
    answers, told = os.pipe()
    between = os.fork()
    if between == 0:
        try:
            os.close(answers)
            # Another session may watch this process. By these variables, it would take the engine for a process of its
            # run, and would end it.
            for name in [name for name in os.environ if name.startswith("TFMEMTOP_")]:
                del os.environ[name]
            with os.fdopen(told, "wb") as answer:
                pickle.dump(start(launch), answer)
        finally:
            os._exit(0)
    os.close(told)
    with os.fdopen(answers, "rb") as sent:
        answered = sent.read()
    os.waitpid(between, 0)
    try:
        launched: Launched = pickle.loads(answered)
        return launched
    except (EOFError, pickle.UnpicklingError):  # that process was killed
        return without_engine()


def start(launch: Launch) -> Launched:
    """Start an engine in a process session of its own and in this process's working folder. It starts the script.

    All errors, also those in the engine's own start, are returned as ``Launched.error``.
    """
    # Answers have a file descriptor of their own, since any library may print to stdout.
    answers, told = os.pipe()
    os.set_inheritable(told, True)
    try:
        engine = subprocess.Popen(
            boot.command(boot.ENGINE, str(told)),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            # File descriptors that the user's shell opened for the script, as in <(…), pass through the engine to it.
            close_fds=False,
        )
    except OSError as error:
        os.close(answers)
        return without_engine(str(error))
    finally:
        os.close(told)
    # The engine goes on by itself. With a return code set, Popen neither waits for it nor warns that it still runs.
    engine.returncode = 0
    assert engine.stdin and engine.stderr
    with engine.stderr as complaints, os.fdopen(answers, "rb") as sent:
        try:
            with engine.stdin as asked:
                pickle.dump(launch, asked)
        except OSError:
            pass  # the engine has ended; its last message is read below
        try:
            launched: Launched = pickle.load(sent)
            return launched
        except (EOFError, pickle.UnpicklingError):
            pass  # the engine has ended
        last = complaints.read().decode(errors="replace").strip().splitlines()[-1:]
    return without_engine(last[0] if last else "")


INJECT = Path(__file__).parents[2] / "inject"
"""The folder that is put into PYTHONPATH."""

ALONE = f"{INJECT}/."
"""The same folder, where the user's PYTHONPATH is empty or not set.

A script may extend the variable: ``PYTHONPATH=$PYTHONPATH:/x``. Without tfmemtop, the result would have an empty part,
which means the working folder. From this spelling, the hook recognizes that case and puts the working folder there.
"""

FLAGS, FOLDER = "XLA_FLAGS", "TFMEMTOP_XLA"
ANY_PROCESS = "0"
"""The subfolder for processes without the hook. In other processes, the hook puts the process's number in its place."""

_MOST_MODULES = 1000  # if the engine ends first, what XLA writes is not removed
_PLAIN = re.compile(r"[\w./+=:,@%-]+")
_DUMPING = re.compile(r"(?:^|\s)(--?xla_dump_\S*)")


def mark(hook_socket: Path) -> bytes:
    """Return the entry that is in the environment of the script and of its children, unless the script clears it."""
    return b"TFMEMTOP_SOCKET=" + os.fsencode(hook_socket)


def data_folder(hook_socket: Path) -> Path:
    """Return the folder into which TensorFlow writes the map of a pool that ran out of memory."""
    return hook_socket.with_name("data")


def xla_folder(hook_socket: Path) -> Path:
    """Return the folder into which XLA writes its reports, if they are requested."""
    return hook_socket.with_name("xla")


def path_with_hook(users: str) -> str:
    """Return the PYTHONPATH that brings the hook in.

    *users* is the user's own and stays as it is, since an empty part in it means the working folder.
    """
    return f"{INJECT}{os.pathsep}{users}" if users not in ("", ALONE) else ALONE


def with_hook(environment: dict[str, str], launch: Launch, hook_socket: Path) -> dict[str, str]:
    """Return *environment* with the variables that bring the hook in."""
    hooked = environment | {"PYTHONPATH": path_with_hook(environment.get("PYTHONPATH", ""))}
    hooked.pop("TFMEMTOP_NO_PROBE", None)  # may be set by an outer run that this run is part of
    return hooked | hook_variables(launch, hook_socket)


def hook_variables(launch: Launch, hook_socket: Path) -> dict[str, str]:
    """Return the variables that the hook reads: where the engine is, and how to take readings."""
    found = {
        "TFMEMTOP_SOCKET": str(hook_socket),
        "TFMEMTOP_DATA": str(data_folder(hook_socket)),
        "TFMEMTOP_INTERVAL": f"{launch.interval_s:g}",
        "TFMEMTOP_HOLDERS_INTERVAL": f"{launch.holders_interval_s:g}",
    }
    if not launch.probe:
        found["TFMEMTOP_NO_PROBE"] = "1"
    return found


class Refused(NamedTuple):
    """Why no reports are requested from XLA. ``detail`` are the user's flags that prevent it."""

    why: XlaMissing
    detail: str


def with_report(environment: dict[str, str], folder: Path) -> "dict[str, str] | Refused":
    """Return *environment* with flags that make XLA write its reports to *folder*, or why that is not possible.

    All versions of XLA since TensorFlow 2.4 support these flags. An unknown flag would abort the process. XLA takes
    ``XLA_FLAGS`` for the name of a file unless it begins with a dash.
    """
    users = environment.get(FLAGS, "")
    if users.strip() and not users.lstrip().startswith("-"):
        return Refused(XlaMissing.USERS_FILE, users.strip())
    if found := _DUMPING.findall(users):
        # Also if they name no folder: they would then apply to our files, and no longer to what the user reads.
        return Refused(XlaMissing.USERS_FOLDER, " ".join(found))
    path = f"{folder}/{ANY_PROCESS}"
    if not _PLAIN.fullmatch(path):
        return Refused(XlaMissing.NO_FOLDER, str(folder))
    ours = f"--xla_dump_to={path} --xla_dump_hlo_as_text --xla_dump_max_hlo_modules={_MOST_MODULES}"
    # Our flags come first: if the user's flags have a quotation without an end, ours are not part of it.
    return environment | {FLAGS: f"{ours} {users}" if users.strip() else ours, FOLDER: str(folder)}
