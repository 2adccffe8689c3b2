"""The commands that a reader sends to the engine."""

from typing import Annotated

import msgspec

from tfmemtop.bounds import Cells, Many, Name, Number, Seconds, Size, Typed, Words
from tfmemtop.settings import Settings


class Command(msgspec.Struct, frozen=True, kw_only=True, tag_field="do"):
    """The base of all commands. Each command is a class here, and a case in ``engine/engine.py``."""


def command_types() -> tuple[type[Command], ...]:
    """Return all classes of commands."""
    return tuple(Command.__subclasses__())


GRACE_S, TRY_GRACE_S = 10.0, 5.0
"""Seconds between the signals TERM and KILL: for a run that the user ends, and for a try of ``fit``."""


class Relaunch(Command, tag="relaunch", frozen=True):
    """End the run if it still goes on, wait until its memory is free, and start the next run."""

    argv: Words
    settings: Settings
    grace_s: Seconds = GRACE_S


class ForNextStart(Command, tag="for_next_start", frozen=True):
    """Store settings for the next start of the session's Jupyter kernel."""

    settings: Settings


class Stop(Command, tag="stop", frozen=True):
    """End the run: send TERM, then KILL after ``grace_s``. With ``quit`` the engine ends afterwards."""

    grace_s: Seconds = GRACE_S
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
    """Request an :class:`Environment` event of a process."""

    pid: Number


class MapWanted(Command, tag="map_wanted", frozen=True):
    """Request :class:`MemoryMap` events of one pool. A reader's latest request for a pool replaces its earlier ones.

    ``pace_s`` is the time between two maps; ``None`` withdraws the request. With ``region``, the address of a region,
    all cells of the map show that region.
    """

    pid: Number
    device: Name
    pace_s: Seconds | None = 1.0
    region: Size | None = None


class Attach(Command, tag="attach", frozen=True):
    """Read, from outside, a process that tfmemtop did not start. Only a session that runs no script does so.

    With ``if_tensorflow``, the engine does nothing and reports nothing if it finds no TensorFlow in the process.
    """

    pid: Number
    if_tensorflow: bool = False


class CensusNow(Command, tag="census_now", frozen=True):
    """Request a :class:`Census` event of a process. Where a census costs little, one comes every 30 s anyway.

    With ``tensors``, live tensors are counted too. Counting them stops the script for about a tenth of a second.
    """

    pid: Number
    tensors: bool = False


class HoldersNow(Command, tag="holders_now", frozen=True):
    """Request a window of allocations of a process: a :class:`Holders` event for each of its pools."""

    pid: Number
