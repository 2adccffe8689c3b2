"""Options that several commands share, and the types of their values."""

import math
from argparse import ArgumentTypeError, _ArgumentGroup
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from tfmemtop.charset import takes_utf8
from tfmemtop.cli.parser import FOR_ALERTS, FOR_RUN, BaseArguments, Parser
from tfmemtop.engine.stream.folders import choices_file
from tfmemtop.engine.stream.kept_sessions import kept_recordings
from tfmemtop.filenames import check, unknown_field
from tfmemtop.options import UiOptions
from tfmemtop.settings import INTERVAL_S, AllocatorName, Growth, Settings


class RunArguments(BaseArguments):
    """The options of a run of the script; ``None`` leaves the choice to the script.

    Sizes are still text, because ``50%`` can be converted to bytes only for a known machine. ``interval`` is the time
    between two readings of the hook, and ``holders_interval`` that between two windows of allocations (0: no windows),
    both in seconds. ``trace`` records all allocations from the start on. ``no_probe`` keeps the probe out of the
    script. ``record`` is the file to which the events are written. With ``no_record`` no recording of the session is
    kept. ``on_end`` and ``on_oom`` are command lines for ``sh``. ``metrics`` is the address and the port of a page for
    Prometheus.
    """

    growth: Growth | Literal["script"] | None = None
    memory_limit: str | None = None
    allocator: AllocatorName | Literal["script"] | None = None
    gpus: tuple[int, ...] | None = None
    cpu_pool: str | None = None
    xla_report: bool = False
    interval: float = INTERVAL_S
    holders_interval: float = 60.0
    trace: bool = False
    no_probe: bool = False
    record: Path | None = None
    no_record: bool = False
    on_end: str = ""
    on_oom: str = ""
    metrics: tuple[str, int] | None = None
    metrics_sd: Path | None = None
    metrics_file: Path | None = None

    @property
    def settings(self) -> Settings:
        """The settings, except for those that are sizes."""
        return Settings(
            growth=None if self.growth == "script" else self.growth,
            allocator=None if self.allocator == "script" else self.allocator,
            gpus=self.gpus,
            xla_report=self.xla_report,
        )


class ScreenArguments(BaseArguments):
    """The options of the screen."""

    readonly: bool = False
    ascii: bool = False
    no_notify: bool = False

    def ui_options(self, environment: dict[str, str]) -> UiOptions:
        """Return the options for the screen. *environment* is the user's own."""
        ascii_only = self.ascii or not takes_utf8(environment)
        return UiOptions(
            ascii=ascii_only,
            readonly=self.readonly,
            color=not environment.get("NO_COLOR"),
            notify=not self.no_notify,
            choices=choices_file(),
            recording=lambda session: kept_recordings().get(session),
        )


def add_run_options(parser: Parser, *, sizes: bool = True) -> None:
    """Add the options of :class:`RunArguments` except ``record``; *sizes*: include those that set a size.

    A search for a size uses this without *sizes*. Its growth is on by default.
    """
    run = parser.add_argument_group(FOR_RUN)
    if not sizes:
        run.add_argument("--growth", choices=("on", "off"), help="memory growth; on if not given")
    if sizes:
        run.add_argument(
            "--growth", choices=("on", "off", "script"), help="memory growth; script: as the program sets it (default)"
        )
        run.add_argument("--memory-limit", metavar="SIZE", help="the largest size of TensorFlow's pool on each GPU")
    run.add_argument("--allocator", choices=("bfc", "cuda_malloc_async", "script"), help="TensorFlow's allocator")
    run.add_argument(
        "--gpus",
        metavar="LIST",
        type=gpu_list,
        help="the GPUs that the program sees, such as 0,2; none hides all GPUs",
    )
    if sizes:
        run.add_argument("--cpu-pool", metavar="SIZE", help="give the CPU a BFC pool of this size")
    run.add_argument("--xla-report", action="store_true", help="let XLA write down what its buffers contain")
    run.add_argument(
        "--interval",
        metavar="SECONDS",
        type=seconds(0.02, 60),
        help=f"time between two readings, 0.02 to 60 (default {INTERVAL_S})",
    )
    run.add_argument(
        "--holders-interval",
        metavar="SECONDS",
        type=seconds(0, 86_400),
        help="time between two windows in which allocations are recorded, up to 86400; 0: only on request (default 60)",
    )
    run.add_argument(
        "--trace",
        action="store_true",
        help="record the first 200000 allocations and frees, not only those of the first three steps, for whatif",
    )
    run.add_argument("--no-probe", action="store_true", help="do not read the inside of TensorFlow's pools")


def add_alert_options(parser: Parser) -> None:
    """Add ``--on-end COMMAND`` and ``--on-oom COMMAND``."""
    alerts = parser.add_argument_group(FOR_ALERTS)
    alerts.add_argument("--on-end", metavar="COMMAND", help="a shell command to run when the program has ended")
    alerts.add_argument("--on-oom", metavar="COMMAND", help="a shell command to run when memory has run out")


def add_export_options(parser: Parser) -> None:
    """Add ``--metrics``, ``--metrics-sd`` and ``--metrics-file``."""
    group = parser.add_argument_group("for Prometheus")
    group.add_argument(
        "--metrics",
        metavar="[ADDR:]PORT",
        type=address,
        help="answer Prometheus at this port (of 127.0.0.1 unless ADDR is given); 0: any free port",
    )
    group.add_argument(
        "--metrics-sd",
        metavar="FILE",
        type=file_of_a_rank,
        help="write the address of the metrics to FILE, for Prometheus' file_sd_configs",
    )
    group.add_argument(
        "--metrics-file",
        metavar="FILE.prom",
        type=prom_file,
        help="write the metrics to FILE.prom, for node_exporter's textfile collector",
    )


def add_record_option(parser: Parser) -> None:
    """Add ``--record FILE`` and ``--no-record``."""
    group = parser.add_argument_group("for the recording")
    group.add_argument(
        "--record",
        metavar="FILE",
        type=file_of_a_rank,
        help="write all events to FILE; %%j, %%h and %%r in its name become job, host and rank",
    )
    group.add_argument("--no-record", action="store_true", help="keep no recording of the session")


def add_screen_options(parser: Parser) -> None:
    """Add the options of :class:`ScreenArguments`."""
    screen = parser.add_argument_group("for the screen")
    screen.add_argument("--readonly", action="store_true", help="only show: no signals, no relaunch, no typing")
    screen.add_argument(
        "--ascii", action="store_true", help="draw with ASCII characters only; the default if the locale is not UTF-8"
    )
    screen.add_argument(
        "--no-notify", action="store_true", help="no bell and no notification when a run ends or memory runs out"
    )


class ReportArguments(BaseArguments):
    """The options of a report. ``file`` is the recording, as ``FILE`` or ``FILE:N``."""

    file: str | None = None
    json: bool = False


def add_report_options(parser: Parser) -> _ArgumentGroup:
    """Add the options of :class:`ReportArguments`, and return the group of those of the output."""
    parser.add_argument("file", metavar="FILE", nargs="?", help="a recording or a session; FILE:2 means its run 2")
    return add_json_option(parser)


def add_json_option(parser: Parser) -> _ArgumentGroup:
    """Add ``--json``, and return its group, to which other options of the output can be added."""
    group = parser.add_argument_group("for the output")
    group.add_argument("--json", action="store_true", help="print JSON")
    return group


def gpu_list(text: str) -> tuple[int, ...]:
    """Return ``0,2`` as NVML indices. ``none`` and an empty text mean no GPU at all."""
    if text.strip().lower() in ("", "none"):
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise ArgumentTypeError(f"{text!r} is not a list of GPUs such as 0,2; give numbers as nvidia-smi shows them")
    numbers = tuple(map(int, parts))
    if len(set(numbers)) < len(numbers):
        raise ArgumentTypeError(f"{text!r} names a GPU twice")
    return numbers


def seconds(least: float, most: float) -> Callable[[str], float]:
    """Return the parser of a time from *least* to *most* seconds."""

    def read(text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not least <= found <= most:
            raise ArgumentTypeError(f"{text!r} is not a number of seconds from {least:g} to {most:g}")
        return found

    return read


def whole_number(most: int) -> Callable[[str], int]:
    """Return the parser of a whole number from 1 to *most*."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 12 and 1 <= int(text) <= most):
            raise ArgumentTypeError(f"{text!r} is not a whole number from 1 to {most}")
        return int(text)

    return read


def file_name(text: str) -> Path:
    """Return *text* as the name of a file to write. It must not be empty."""
    if not text:
        raise ArgumentTypeError("the file's name is empty")
    return Path(text)


def address(text: str) -> tuple[str, int]:
    """Return ``9400``, ``0.0.0.0:9400`` or ``[::1]:9400`` as an address and a port. The default is ``127.0.0.1``."""
    host, colon, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port[:6]) <= 65_535):
        raise ArgumentTypeError(f"{text!r} is not a port such as 9400, or an address and a port such as 0.0.0.0:9400")
    if colon and not host:
        raise ArgumentTypeError(f"{text!r} has no address; 0.0.0.0:{port} is every address of this machine")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ArgumentTypeError(f"{text!r}: an address with colons needs brackets, as in [::1]:9400")
    return host or "127.0.0.1", int(port)


def prom_file(text: str) -> Path:
    """Return *text* as the name of a file for node_exporter, which reads only names that end in ``.prom``."""
    if not text.endswith(".prom"):
        raise ArgumentTypeError(f"{text!r} does not end in .prom; node_exporter reads no other file")
    return file_of_a_rank(text)


def file_of_a_rank(text: str) -> Path:
    """Return *text* as the name of a file to write, with fields such as ``%r``; see :mod:`tfmemtop.filenames`."""
    if unknown := check(text):
        raise ArgumentTypeError(unknown_field(unknown))
    return file_name(text)
