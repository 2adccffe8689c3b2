"""Options that several commands share, and the types of their values."""

import math
from argparse import ArgumentTypeError
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from tfmemtop.charset import takes_utf8
from tfmemtop.cli.parser import FOR_ALERTS, FOR_RUN, BaseArguments, argument, option, switch
from tfmemtop.engine.stream.folders import choices_file
from tfmemtop.engine.stream.kept_sessions import kept_recordings
from tfmemtop.limits import FreeGpus, parse_gpus
from tfmemtop.placement import check, unknown_field
from tfmemtop.settings import INTERVAL_S, AllocatorName, Growth, Settings
from tfmemtop.ui import UiOptions


def gpu_list(text: str) -> tuple[int, ...] | FreeGpus:
    """Return the value of ``--gpus``, as :func:`parse_gpus` parses it."""
    try:
        return parse_gpus(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


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


def file_of_a_rank(text: str) -> Path:
    """Return *text* as the name of a file to write, with fields such as ``%r``; see :mod:`tfmemtop.placement`."""
    if unknown := check(text):
        raise ArgumentTypeError(unknown_field(unknown))
    return file_name(text)


_FOR_PROMETHEUS, _FOR_SCREEN = "for Prometheus", "for the screen"
FOR_RECORDING, FOR_OUTPUT = "for the recording", "for the output"

RECORD: Any = option(
    FOR_RECORDING,
    "write all events to FILE; %%j, %%h and %%r in its name become job, host and rank",
    metavar="FILE",
    type=file_of_a_rank,
)
NO_RECORD: Any = switch(FOR_RECORDING, "keep no recording of the session")
JSON: Any = switch(FOR_OUTPUT, "print JSON")


class RunArguments(BaseArguments):
    """The options of a run of the script; ``None`` leaves the choice to the script.

    Sizes are still text, because ``50%`` can be converted to bytes only for a known machine. The options at the end are
    offered only by some commands.
    """

    growth: Growth | Literal["script"] | None = option(
        FOR_RUN, "memory growth; script: as the program sets it (default)", choices=("on", "off", "script")
    )
    memory_limit: str | None = option(FOR_RUN, "the largest size of TensorFlow's pool on each GPU", metavar="SIZE")
    allocator: AllocatorName | Literal["script"] | None = option(
        FOR_RUN, "TensorFlow's allocator", choices=("bfc", "cuda_malloc_async", "script")
    )
    gpus: tuple[int, ...] | FreeGpus | None = option(
        FOR_RUN,
        "the GPUs that the program sees, such as 0,2; free:2 means the two with the most free memory, none hides all",
        metavar="LIST",
        type=gpu_list,
    )
    cpu_pool: str | None = option(FOR_RUN, "give the CPU a BFC pool of this size", metavar="SIZE")
    xla_report: bool = switch(FOR_RUN, "let XLA write down what its buffers contain")
    interval: float = option(
        FOR_RUN,
        f"time between two readings, 0.02 to 60 (default {INTERVAL_S})",
        metavar="SECONDS",
        type=seconds(0.02, 60),
        default=INTERVAL_S,
    )
    holders_interval: float = option(
        FOR_RUN,
        "time between two windows in which allocations are recorded, up to 86400; 0: only on request (default 60)",
        metavar="SECONDS",
        type=seconds(0, 86_400),
        default=60.0,
    )
    no_probe: bool = switch(FOR_RUN, "do not read the inside of TensorFlow's pools")

    record: Path | None = None
    no_record: bool = False
    on_end: str = ""
    on_oom: str = ""
    metrics: tuple[str, int] | None = None
    metrics_sd: Path | None = None

    @property
    def settings(self) -> Settings:
        """The settings, except for those that are sizes, and for GPUs that are chosen at the start."""
        return Settings(
            growth=None if self.growth == "script" else self.growth,
            allocator=None if self.allocator == "script" else self.allocator,
            gpus=None if isinstance(self.gpus, FreeGpus) else self.gpus,
            xla_report=self.xla_report,
        )


class WatchedRunArguments(RunArguments):
    """The options of one run that is watched until its end: also alerts and metrics."""

    on_end: str = option(FOR_ALERTS, "a shell command to run when the program has ended", metavar="COMMAND", default="")
    on_oom: str = option(FOR_ALERTS, "a shell command to run when memory has run out", metavar="COMMAND", default="")
    metrics: tuple[str, int] | None = option(
        _FOR_PROMETHEUS,
        "answer Prometheus at this port (of 127.0.0.1 unless ADDR is given); 0: any free port",
        metavar="[ADDR:]PORT",
        type=address,
    )
    metrics_sd: Path | None = option(
        _FOR_PROMETHEUS,
        "write the address of the metrics to FILE, for Prometheus' file_sd_configs",
        metavar="FILE",
        type=file_of_a_rank,
    )


class ScreenArguments(BaseArguments):
    """The options of the screen."""

    readonly: bool = switch(_FOR_SCREEN, "only show: no signals, no relaunch, no typing")
    ascii: bool = switch(_FOR_SCREEN, "draw with ASCII characters only; the default if the locale is not UTF-8")
    no_notify: bool = switch(_FOR_SCREEN, "no bell and no notification when a run ends or memory runs out")

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


class ReportArguments(BaseArguments):
    """The options of a report. ``file`` is the recording, as ``FILE`` or ``FILE:N``."""

    file: str | None = argument("FILE", "a recording or a session; FILE:2 means its run 2")
    json: bool = JSON
