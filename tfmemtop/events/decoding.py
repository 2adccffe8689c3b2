"""Bytes from elsewhere as messages: the one place where they are decoded, and found to be out of bounds."""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from tfmemtop.events.commands import (
    CensusNow,
    Input,
    Leave,
    MapWanted,
    ReadEnvironment,
    Relaunch,
    Resize,
    Signal,
    Stop,
)
from tfmemtop.events.inside import (
    Allocator,
    Census,
    Chunks,
    Effective,
    Functions,
    Hook,
    HookEnd,
    HookError,
    Initialised,
    MemoryMap,
    OutOfMemory,
    PoolGrowth,
    Probe,
    Requested,
    Waiting,
)
from tfmemtop.events.outside import (
    Device,
    DeviceReading,
    Environment,
    Notice,
    Output,
    Process,
    ProcessReadings,
    Run,
    RunEnd,
    Session,
    Stopping,
    Terminal,
)

FromHook = (
    Hook
    | HookEnd
    | HookError
    | Requested
    | Initialised
    | Effective
    | Allocator
    | PoolGrowth
    | MemoryMap
    | Probe
    | Functions
    | Census
    | OutOfMemory
    | Waiting
)
"""What a process that we are inside of may tell."""

AnyEvent = (
    Session
    | Run
    | RunEnd
    | Stopping
    | Device
    | DeviceReading
    | Process
    | ProcessReadings
    | Environment
    | FromHook
    | Output
    | Terminal
    | Notice
)

AnyCommand = Relaunch | Stop | Leave | Signal | Input | Resize | ReadEnvironment | MapWanted | CensusNow

T = TypeVar("T")


class Unreadable(ValueError):
    """Not a message: no JSON, of another shape, or out of bounds; the text is one line that says which."""


def decoder(kind: type[T]) -> Callable[[bytes], T]:
    """A function that decodes JSON as *kind* and raises :class:`Unreadable` and nothing else."""
    decode = msgspec.json.Decoder(kind).decode

    def checked(line: bytes) -> T:
        try:
            return decode(line)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise Unreadable(_why(error)) from None

    return checked


def _why(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    return str(error)


# mypy takes a union for no type.
decode_event: Callable[[bytes], AnyEvent] = decoder(AnyEvent)  # type: ignore[arg-type]
decode_command: Callable[[bytes], AnyCommand] = decoder(AnyCommand)  # type: ignore[arg-type]
_decode_object: Callable[[bytes], dict[str, msgspec.Raw]] = decoder(dict[str, msgspec.Raw])


def decode_from_hook(packet: bytes, pid: int) -> FromHook | Chunks:
    """What process *pid*, which the kernel vouches for, tells; its time is still to be given.

    Raises:
        Unreadable: it makes no sense.
    """
    fields = _decode_object(packet) | {"t": msgspec.Raw(b"0"), "pid": msgspec.Raw(b"%d" % pid)}
    return _decode_from_hook(msgspec.json.encode(fields))


_decode_from_hook: Callable[[bytes], FromHook | Chunks] = decoder(FromHook | Chunks)  # type: ignore[arg-type]
