"""Options that several commands share."""

from argparse import _ArgumentGroup
from pathlib import Path
from typing import Literal

from tfmemtop.charset import takes_utf8
from tfmemtop.commands import values
from tfmemtop.commands.parser import Arguments, Parser
from tfmemtop.engine.stream.folders import choices_file
from tfmemtop.engine.stream.kept_sessions import kept_recordings
from tfmemtop.options import UiOptions
from tfmemtop.settings import INTERVAL_S, AllocatorName, Growth, Settings
from tfmemtop.words import command_line


class RunArguments(Arguments):
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


class ScreenArguments(Arguments):
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
    run = parser.add_argument_group(command_line.FOR_RUN)
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
        type=values.gpus,
        help="the GPUs that the program sees, such as 0,2; none hides all GPUs",
    )
    if sizes:
        run.add_argument("--cpu-pool", metavar="SIZE", help="give the CPU a BFC pool of this size")
    run.add_argument("--xla-report", action="store_true", help="let XLA write down what its buffers contain")
    run.add_argument(
        "--interval",
        metavar="SECONDS",
        type=values.seconds(0.02, 60),
        help=f"time between two readings, 0.02 to 60 (default {INTERVAL_S})",
    )
    run.add_argument(
        "--holders-interval",
        metavar="SECONDS",
        type=values.seconds(0, 86_400),
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
    alerts = parser.add_argument_group(command_line.FOR_ALERTS)
    alerts.add_argument("--on-end", metavar="COMMAND", help="a shell command to run when the program has ended")
    alerts.add_argument("--on-oom", metavar="COMMAND", help="a shell command to run when memory has run out")


def add_export_options(parser: Parser) -> None:
    """Add ``--metrics``, ``--metrics-sd`` and ``--metrics-file``."""
    group = parser.add_argument_group("for Prometheus")
    group.add_argument(
        "--metrics",
        metavar="[ADDR:]PORT",
        type=values.address,
        help="answer Prometheus at this port (of 127.0.0.1 unless ADDR is given); 0: any free port",
    )
    group.add_argument(
        "--metrics-sd",
        metavar="FILE",
        type=values.file_of_a_rank,
        help="write the address of the metrics to FILE, for Prometheus' file_sd_configs",
    )
    group.add_argument(
        "--metrics-file",
        metavar="FILE.prom",
        type=values.prom_file,
        help="write the metrics to FILE.prom, for node_exporter's textfile collector",
    )


def add_record_option(parser: Parser) -> None:
    """Add ``--record FILE`` and ``--no-record``."""
    group = parser.add_argument_group("for the recording")
    group.add_argument(
        "--record",
        metavar="FILE",
        type=values.file_of_a_rank,
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


def add_json_option(parser: Parser) -> _ArgumentGroup:
    """Add ``--json``, and return its group, to which other options of the output can be added."""
    group = parser.add_argument_group("for the output")
    group.add_argument("--json", action="store_true", help="print JSON")
    return group
