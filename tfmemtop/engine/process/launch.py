"""What is said between an engine and the process that starts it."""

import json

import msgspec

from tfmemtop.engine.process.unstarted import Unstarted
from tfmemtop.settings import Settings


class Kernel(msgspec.Struct, frozen=True, kw_only=True):
    """A Jupyter kernel: the process that becomes it, its connection file, and the file of its notebook, if known.

    ``shared`` is what all its starts have in common. This is start number ``start`` of them, and the sessions of those
    before are ``earlier``, as far as they are told of.
    """

    pid: int
    connection: str
    shared: str
    notebook: str | None = None
    start: int = 1
    earlier: tuple[str, ...] = ()


class Export(msgspec.Struct, frozen=True, kw_only=True):
    """Where the session's metrics go: a page at ``address`` and ``port`` (0: any that is free), and files.

    ``discovery`` tells Prometheus where the page is, ``textfile`` holds the metrics themselves; both are paths.
    """

    address: str = "127.0.0.1"
    port: int | None = None
    discovery: str | None = None
    textfile: str | None = None


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine is started with; an empty *argv* only watches, with *attach* the process of that number.

    Texts from the user's system (``argv``, ``cwd``, ``environment``, ``record``, the paths in ``export``) are as
    :func:`os.fsdecode` gives them: other bytes than UTF-8 are surrogates. ``ignored`` and ``blocked`` are
    numbers of signals, for the script to inherit. With ``kernel`` that process becomes the script by itself, in the
    environment that it is told.
    """

    argv: list[str]
    cwd: str
    environment: dict[str, str]  # the user's own, pristine
    settings: Settings = Settings()
    interval_s: float = 0.1  # the hook's pace
    holders_interval_s: float = 60.0  # between two windows of allocations, 0: none
    trace: bool = False  # record all allocations from the start on, not only those of the first steps
    record: str | None = None  # path of a recording to write
    keep: bool = False  # have the session recorded of itself, if it runs a script
    probe: bool = True  # look into the pools
    columns: int = 80
    rows: int = 24
    ignored: list[int] = []
    blocked: list[int] = []
    attach: int | None = None
    inject: bool = False  # put the hook into that process
    kernel: Kernel | None = None
    on_end: str = ""  # a line for sh when a run has ended
    on_oom: str = ""  # likewise at its first out-of-memory error
    export: Export | None = None
    task: bool = False  # what starts this is the task of a Slurm step, and waits for the script

    def encode(self) -> bytes:
        """As JSON. Not by msgspec, which refuses surrogates."""
        return json.dumps(msgspec.to_builtins(self)).encode()

    @classmethod
    def decode(cls, text: bytes) -> "Launch":
        """The launch from its JSON.

        Raises:
            ValueError: *text* is no launch.
        """
        return msgspec.convert(json.loads(text), cls)


class Launched(msgspec.Struct, frozen=True, kw_only=True):
    """The engine's answer: where to reach it, or why it could not start.

    It comes twice: before the script is started, and once it is (``started``). ``environment`` is for a process that
    becomes the script by itself, its texts as those of :class:`Launch`.
    """

    id: str = ""
    socket: str = ""
    output_path: str | None = None
    started: bool = False
    error: Unstarted | None = None
    environment: dict[str, str] | None = None

    def encode(self) -> bytes:
        """As one line of JSON. Not by msgspec, which refuses surrogates."""
        return json.dumps(msgspec.to_builtins(self)).encode() + b"\n"

    @classmethod
    def decode(cls, line: bytes) -> "Launched":
        """The answer from its line.

        Raises:
            ValueError: *line* is no answer.
        """
        return msgspec.convert(json.loads(line), cls)
