"""What went wrong with a hook, as facts; ``words/hook_parts.py`` says them."""

from enum import Enum

from tfmemtop.bounds import Name, Number, Size, Text
from tfmemtop.events.base import Event, Origin
from tfmemtop.events.keep import Newest


class HookTrouble(Enum):
    """What is wrong with a hook; in brackets, which fields of :class:`HookError` belong to it."""

    FAILED = "failed"  # a part of it, inside the script (part, of; text: the error)
    UNREAD = "unread"  # it sent what cannot be read (text: why)
    NO_WINDOW = "no_window"  # of allocations was opened that somebody asked for (of: the reason)
    TOO_LONG = "too_long"  # it sent a longer packet than it may (count: bytes of the longest)


class HookPart(Enum):
    """What a hook was about to do as it failed; in brackets, what ``of`` names."""

    LOAD = "load"  # the agent
    HELLO = "hello"  # to the engine
    JOIN = "join"  # a process that ran already
    FORK = "fork"  # starting over in a forked child
    END = "end"
    ENVIRONMENT = "environment"  # (its variable)
    LISTEN = "listen"  # to TensorFlow (what of it)
    NOTICE = "notice"  # what TensorFlow does (what)
    COUNT = "count"  # (what)
    RECORD = "record"  # a call of the script's (its name)
    SETTLE = "settle"  # TensorFlow's options
    DEVICES = "devices"  # telling of them
    READ = "read"  # (what, or a device)
    SEARCH = "search"  # (what)
    CENSUS = "census"
    OBEY = "obey"  # the engine
    WATCH = "watch"  # reading all there is, again and again
    SAMPLER = "sampler"  # stopping the native one
    DUMPS = "dumps"  # asking TensorFlow for them
    XLA = "xla"  # naming a folder for its reports
    WAITING = "waiting"  # telling where the script waits
    PROFILER = "profiler"  # making way for one of the script's
    IN_PLACE = "in_place"  # looking into pools


class HookError(Event, tag="hook_error", frozen=True):
    """Something of ours failed inside the script, or on the way from there; the script went on.

    Without a ``part``, ``text`` says all that is known.
    """

    origin = Origin.HOOK
    keep = Newest(50)

    pid: Number
    text: Text
    kind: HookTrouble = HookTrouble.FAILED
    count: Size | None = None
    part: HookPart | None = None
    of: Name = ""
