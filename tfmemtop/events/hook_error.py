"""Errors of a hook, and their texts."""

from enum import Enum

from tfmemtop.bounds import Name, Number, Size, Text
from tfmemtop.events.base import DescribedEnum, Event, Newest, Origin


class HookTrouble(Enum):
    """What is wrong with a hook; in brackets, which fields of :class:`HookError` belong to it."""

    FAILED = "failed"  # a part of the hook failed inside the script (part, of; text: the error)
    UNREAD = "unread"  # the hook sent data that cannot be read (text: why)
    NO_WINDOW = "no_window"  # a window of allocations was requested, and none opened (of: the reason)
    TOO_LONG = "too_long"  # the hook sent a longer packet than is allowed (count: bytes allowed)


class HookPart(DescribedEnum):
    """What a hook was about to do when it failed; in brackets, what ``of`` names."""

    LOAD = "load", "loading the hook"
    HELLO = "hello", "telling the engine of itself"
    FORK = "fork", "starting over in a fork"
    END = "end", "ending"
    ENVIRONMENT = "environment", "reading {of}"  # (the variable)
    LISTEN = "listen", "listening to {of}"  # (the patched part)
    NOTICE = "notice", "noticing a new {of}"  # (what)
    COUNT = "count", "counting {of}"  # (what)
    RECORD = "record", "recording {of}"  # (its name)
    SETTLE = "settle", "setting TensorFlow's options"
    DEVICES = "devices", "telling of the devices"
    READ = "read", "reading {of}"  # (which, or a device)
    SEARCH = "search", "looking for {of}"  # (for what)
    CENSUS = "census", "taking a census"
    OBEY = "obey", "doing what the engine asks"
    WATCH = "watch", "reading the figures"
    SAMPLER = "sampler", "stopping the native sampler"
    XLA = "xla", "naming a folder for XLA"
    WAITING = "waiting", "telling where the script waits"
    PROFILER = "profiler", "making way for a profiler"
    IN_PLACE = "in_place", "reading pools in place"


class HookError(Event, tag="hook_error", frozen=True):
    """A part of tfmemtop failed inside the script, or between the script and the engine; the script went on.

    Without a ``part``, ``text`` contains all that is known.
    """

    origin = Origin.HOOK
    keep = Newest(50)

    pid: Number
    text: Text
    kind: HookTrouble = HookTrouble.FAILED
    count: Size | None = None
    part: HookPart | None = None
    of: Name = ""


def doing(part: HookPart, of: str) -> str:
    """Return what the hook was doing, as one clause; *of* is what it did that to, empty for TensorFlow."""
    return part.text.format(of=of or "TensorFlow")
