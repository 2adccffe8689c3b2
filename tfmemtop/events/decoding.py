"""Messages as bytes. This is the one place where bytes from elsewhere are decoded and found to be out of bounds."""

import functools
import operator
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, TypeVar

import msgspec

from tfmemtop.events.base import Event, Origin, event_types
from tfmemtop.events.commands import Command, command_types
from tfmemtop.events.holders import Window
from tfmemtop.events.memory_map import Chunks

encode = msgspec.json.Encoder().encode

PutDown: TypeAlias = Chunks | Window
"""What a hook says that it has put into a file, for the engine to make events of."""

T = TypeVar("T")


class Unreadable(ValueError):
    """These bytes are not a message: not JSON, of another shape, or out of bounds. The text is one line."""


def decoder(kind: type[T]) -> Callable[[bytes], T]:
    """A function that decodes JSON as *kind* and raises :class:`Unreadable` and nothing else."""
    decode = msgspec.json.Decoder(kind).decode

    def checked(line: bytes) -> T:
        try:
            return decode(line)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise Unreadable(_why(error)) from None

    return checked


def union_of(kinds: Iterable[type]) -> Any:
    """The union of *kinds*, which mypy cannot know as a type."""
    return functools.reduce(operator.or_, kinds)


def decode_event(line: bytes) -> Event:
    """The event on a *line* of the stream.

    Raises:
        Unreadable: it is not an event.
    """
    return _event_decoder()(line)


def decode_command(line: bytes) -> Command:
    """The command on a *line* that a reader sent.

    Raises:
        Unreadable: it is not a command.
    """
    return _command_decoder()(line)


def decode_from_hook(packet: bytes, pid: int, t: float) -> Event | PutDown:
    """What process *pid*, which the kernel vouches for, sent at *t* seconds of the session.

    Raises:
        Unreadable: it is not a message, or not one that a hook may send.
    """
    fields = _object_decoder()(packet) | {"t": msgspec.Raw(encode(t)), "pid": msgspec.Raw(encode(pid))}
    return _hook_decoder()(encode(fields))


# Made when they are first needed: by then all classes are defined.


@functools.cache
def _event_decoder() -> Callable[[bytes], Event]:
    return _decoder_of(event_types())


@functools.cache
def _command_decoder() -> Callable[[bytes], Command]:
    return _decoder_of(command_types())


@functools.cache
def _hook_decoder() -> Callable[[bytes], Event | PutDown]:
    return _decoder_of([*event_types(Origin.HOOK), Chunks, Window])


@functools.cache
def _object_decoder() -> Callable[[bytes], dict[str, msgspec.Raw]]:
    return decoder(dict[str, msgspec.Raw])


def _decoder_of(kinds: Iterable[type[T]]) -> Callable[[bytes], T]:
    return decoder(union_of(kinds))


def _why(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "too deep"
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8"
    return str(error)
