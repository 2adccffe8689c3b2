"""Encodes and decodes messages. Only this module decodes bytes from other processes and checks their bounds."""

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
"""A hook's message that it has written data into a file. The engine reads the file and makes events of it."""

T = TypeVar("T")


class Unreadable(ValueError):
    """The bytes are not a message: not JSON, not of the right shape, or out of bounds. The error's text is one line."""


def decoder(kind: type[T]) -> Callable[[bytes], T]:
    """Return a function that decodes JSON as *kind*. The only exception that it raises is :class:`Unreadable`."""
    decode = msgspec.json.Decoder(kind).decode

    def checked(line: bytes) -> T:
        try:
            return decode(line)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise Unreadable(_why(error)) from None

    return checked


def union_of(kinds: Iterable[type]) -> Any:
    """Return the union of *kinds*. Its type is ``Any``: mypy cannot derive it."""
    return functools.reduce(operator.or_, kinds)


def decode_event(line: bytes) -> Event:
    """Return the event on a *line* of the stream.

    Raises:
        Unreadable: *line* is not an event.
    """
    event: Event = _event_decoder()(line)
    return event


def decode_command(line: bytes) -> Command:
    """Return the command on a *line* that a reader sent.

    Raises:
        Unreadable: *line* is not a command.
    """
    command: Command = _command_decoder()(line)
    return command


def decode_from_hook(packet: bytes, pid: int, t: float) -> Event | PutDown:
    """Return the message in *packet*, which process *pid* sent at *t* seconds of the session.

    The kernel reported *pid*, so the packet itself cannot give a false one.

    Raises:
        Unreadable: *packet* is not a message, or is one that a hook may not send.
    """
    fields = _object_decoder()(packet) | {"t": msgspec.Raw(encode(t)), "pid": msgspec.Raw(encode(pid))}
    message: Event | PutDown = _hook_decoder()(encode(fields))
    return message


# The decoders are made at their first use: by then all classes of events and commands are defined.


_event_decoder = functools.cache(lambda: decoder(union_of(event_types())))
_command_decoder = functools.cache(lambda: decoder(union_of(command_types())))
_hook_decoder = functools.cache(lambda: decoder(union_of([*event_types(Origin.HOOK), Chunks, Window])))
_object_decoder = functools.cache(lambda: decoder(dict[str, msgspec.Raw]))


def _why(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "too deep"
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8"
    return str(error)
