"""Starts an engine. Its messages to and from the process that starts it are pickled: both processes are ours."""

import os
import pickle
import subprocess

import msgspec

from tfmemtop import boot
from tfmemtop.events.unstarted import Unstarted, Why
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
    def ends_with_screen(self) -> bool:
        """Whether nothing of the session outlives its screen. Then its engine may run in the screen's process."""
        return not (self.argv or self.kernel or self.record or self.export) and self.attach is None


class Launched(msgspec.Struct, frozen=True, kw_only=True):
    """The engine's answer: where to reach it, or why it could not start.

    The engine sends two answers: one before the script is started, and one after it (``started``). ``environment`` is
    for a process that becomes the script by itself; its texts are as those of :class:`Launch`.
    """

    id: str = ""
    socket: str = ""
    output_path: str | None = None
    started: bool = False
    error: Unstarted | None = None
    environment: dict[str, str] | None = None


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
        return Launched(error=Unstarted(Why.ENGINE_FAILED))


def start(launch: Launch) -> Launched:
    """Start an engine in a process session of its own and in this process's working folder. It starts the script.

    All errors, also those in the engine's own start, are returned as ``Launched.error``. No script runs then, unless
    the error has an ``output_path``: in that case the script may run.
    """
    # Answers have a file descriptor of their own, since any library may print to stdout.
    answers, told = os.pipe()
    os.set_inheritable(told, True)
    try:
        engine = subprocess.Popen(
            boot.command("tfmemtop.engine.__main__", str(told)),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            # File descriptors that the user's shell opened for the script, as in <(…), pass through the engine to it.
            close_fds=False,
        )
    except OSError as error:
        os.close(answers)
        return Launched(error=Unstarted(Why.ENGINE_FAILED, detail=str(error)))
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
        answer = Launched()
        try:
            while not answer.started and answer.error is None:
                answer = pickle.load(sent)
            return answer
        except (EOFError, pickle.UnpicklingError):
            pass  # the engine has ended
        last = complaints.read().decode(errors="replace").strip().splitlines()[-1:]
    detail = last[0] if last else ""
    return Launched(error=Unstarted(Why.ENGINE_FAILED, detail=detail, output_path=answer.output_path))
