"""The messages between an engine and the process that starts it. They are pickled: both processes are ours."""

import os

import msgspec

from tfmemtop.events.unstarted import Unstarted
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
