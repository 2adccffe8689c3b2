"""Errors of a hook, and their texts."""

from enum import Enum

from tfmemtop.bounds import Name, Number, Size, Text
from tfmemtop.events.base import Event, Origin
from tfmemtop.events.keep import Newest


class HookTrouble(Enum):
    """What is wrong with a hook; in brackets, which fields of :class:`HookError` belong to it."""

    FAILED = "failed"  # a part of the hook failed inside the script (part, of; text: the error)
    UNREAD = "unread"  # the hook sent data that cannot be read (text: why)
    NO_WINDOW = "no_window"  # a window of allocations was requested, and none opened (of: the reason)
    TOO_LONG = "too_long"  # the hook sent a longer packet than is allowed (count: bytes allowed)


class HookPart(Enum):
    """What a hook was about to do when it failed; in brackets, what ``of`` names."""

    LOAD = "load"  # loading the hook's code
    HELLO = "hello"  # sending the engine the first message
    JOIN = "join"  # starting in a process that ran already
    FORK = "fork"  # starting again in a forked child
    END = "end"
    ENVIRONMENT = "environment"  # reading an environment variable (the variable)
    LISTEN = "listen"  # patching TensorFlow so that its calls are noticed (the patched part)
    NOTICE = "notice"  # handling something that TensorFlow did (what)
    COUNT = "count"  # counting (what)
    RECORD = "record"  # recording a call of the script (its name)
    SETTLE = "settle"  # setting TensorFlow's options
    DEVICES = "devices"  # reporting the devices
    READ = "read"  # reading figures (which, or a device)
    SEARCH = "search"  # searching (for what)
    CENSUS = "census"
    OBEY = "obey"  # doing what the engine requests
    WATCH = "watch"  # reading all figures again and again
    SAMPLER = "sampler"  # stopping the native sampler
    XLA = "xla"  # naming a folder for XLA's reports
    WAITING = "waiting"  # reporting where the script waits
    PROFILER = "profiler"  # closing a window so that a profiler of the script can run
    IN_PLACE = "in_place"  # reading pools in place


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


_TEXTS = {
    HookPart.LOAD: "loading the hook",
    HookPart.HELLO: "telling the engine of itself",
    HookPart.JOIN: "joining a process that ran already",
    HookPart.FORK: "starting over in a fork",
    HookPart.END: "ending",
    HookPart.ENVIRONMENT: "reading {of}",
    HookPart.LISTEN: "listening to {of}",
    HookPart.NOTICE: "noticing a new {of}",
    HookPart.COUNT: "counting {of}",
    HookPart.RECORD: "recording {of}",
    HookPart.SETTLE: "setting TensorFlow's options",
    HookPart.DEVICES: "telling of the devices",
    HookPart.READ: "reading {of}",
    HookPart.SEARCH: "looking for {of}",
    HookPart.CENSUS: "taking a census",
    HookPart.OBEY: "doing what the engine asks",
    HookPart.WATCH: "reading the figures",
    HookPart.SAMPLER: "stopping the native sampler",
    HookPart.XLA: "naming a folder for XLA",
    HookPart.WAITING: "telling where the script waits",
    HookPart.PROFILER: "making way for a profiler",
    HookPart.IN_PLACE: "reading pools in place",
}


def doing(part: HookPart, of: str) -> str:
    """Return what the hook was doing, as one clause; *of* is what it did that to, empty for TensorFlow."""
    return _TEXTS[part].format(of=of or "TensorFlow")
