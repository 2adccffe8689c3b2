"""The text about what a hook was doing when it failed. Pure."""

from tfmemtop.events import HookPart

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
    HookPart.DUMPS: "asking for memory dumps",
    HookPart.XLA: "naming a folder for XLA",
    HookPart.WAITING: "telling where the script waits",
    HookPart.PROFILER: "making way for a profiler",
    HookPart.IN_PLACE: "reading pools in place",
}


def doing(part: HookPart, of: str) -> str:
    """Return what the hook was doing, as one clause; *of* is what it did that to, empty for TensorFlow."""
    return _TEXTS[part].format(of=of or "TensorFlow")
