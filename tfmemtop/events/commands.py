"""What a reader asks of the engine."""

from typing import Annotated

import msgspec

from tfmemtop.bounds import Cells, Many, Name, Number, Seconds, Size, Typed, Words
from tfmemtop.settings import Settings


class Command(msgspec.Struct, frozen=True, kw_only=True, tag_field="do"):
    """Base of what a reader asks of the engine."""


class Relaunch(Command, tag="relaunch", frozen=True):
    """End the run if it still goes, wait for its memory, start the next."""

    argv: Words
    settings: Settings
    grace_s: Seconds = 10.0


class Stop(Command, tag="stop", frozen=True):
    """End the run: TERM, KILL after the grace. With ``quit`` the engine ends after it."""

    grace_s: Seconds = 10.0
    quit: bool = False


class Leave(Command, tag="leave", frozen=True):
    """The reader goes; the run goes on under its engine."""


class Signal(Command, tag="signal", frozen=True):
    """Send a signal to processes."""

    pids: Annotated[list[Number], Many]
    signal: Number


class Input(Command, tag="input", frozen=True):
    """Type into the script's terminal."""

    text: Typed


class Resize(Command, tag="resize", frozen=True):
    """Give the script's terminal a size, in cells."""

    columns: Cells
    rows: Cells


class ReadEnvironment(Command, tag="read_environment", frozen=True):
    """Ask for an :class:`Environment` event."""

    pid: Number


class MapWanted(Command, tag="map_wanted", frozen=True):
    """Ask for :class:`MemoryMap` events of one pool until told otherwise; the reader's latest wish counts.

    ``pace_s`` ``None`` takes the wish back. With ``region``, its address, all cells are of that one.
    """

    pid: Number
    device: Name
    pace_s: Seconds | None = 1.0
    region: Size | None = None


class CensusNow(Command, tag="census_now", frozen=True):
    """Ask for a :class:`Census` event of a process; one comes every 30 s anyway where it costs little.

    With ``tensors``, of live tensors too: the script stands still for a tenth of a second or so.
    """

    pid: Number
    tensors: bool = False
