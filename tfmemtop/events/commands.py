"""What a reader asks of the engine."""

from typing import Annotated

import msgspec

from tfmemtop.bounds import Cells, Many, Name, Number, Seconds, Size, Typed, Words
from tfmemtop.settings import Settings


class Command(msgspec.Struct, frozen=True, kw_only=True, tag_field="do"):
    """Base of what a reader asks of the engine. A command is a class here, and a case in ``engine/engine.py``."""


def command_types() -> tuple[type[Command], ...]:
    """All classes of commands."""
    return tuple(Command.__subclasses__())


class Relaunch(Command, tag="relaunch", frozen=True):
    """End the run if it still goes on, wait until its memory is free, and start the next.

    With ``trace`` all allocations of the next run are recorded, not only those of its first steps.
    """

    argv: Words
    settings: Settings
    grace_s: Seconds = 10.0
    trace: bool = False


class ForNextStart(Command, tag="for_next_start", frozen=True):
    """Keep settings for the next start of the session's Jupyter kernel."""

    settings: Settings


class Stop(Command, tag="stop", frozen=True):
    """End the run: TERM, then KILL after ``grace_s``. With ``quit`` the engine ends after it."""

    grace_s: Seconds = 10.0
    quit: bool = False


class Leave(Command, tag="leave", frozen=True):
    """The reader disconnects. The engine and its run go on."""


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
    """Ask for :class:`MemoryMap` events of one pool. The latest of a reader's wishes for a pool counts.

    ``pace_s`` is the time between two maps; ``None`` takes the wish back. ``region`` is the address of a region that
    shall have all cells of the map.
    """

    pid: Number
    device: Name
    pace_s: Seconds | None = 1.0
    region: Size | None = None


class Attach(Command, tag="attach", frozen=True):
    """Read a process from outside that tfmemtop did not start. Only a session that runs no script does so.

    With ``if_tensorflow`` nothing is done, or said, where TensorFlow is not seen in it.
    """

    pid: Number
    if_tensorflow: bool = False


class CensusNow(Command, tag="census_now", frozen=True):
    """Ask for a :class:`Census` event of a process. Where it costs little, one comes every 30 s anyway.

    With ``tensors``, live tensors are counted too. That stops the script for about a tenth of a second.
    """

    pid: Number
    tensors: bool = False


class HoldersNow(Command, tag="holders_now", frozen=True):
    """Ask for a window of allocations of a process: a :class:`Holders` event for each of its pools."""

    pid: Number
