"""The text about the probe, the native library that reads pools from inside, and ways to work without it. Pure."""

from collections.abc import Sequence

from tfmemtop.events import Distrust, Fault, Probe, ProbeNote, ProbeState, Unbuildable, Unbuilt
from tfmemtop.exit_codes import signal_name
from tfmemtop.units import UNKNOWN, format_count

LAYOUTS = "2.16 to 2.22"
"""The versions of TensorFlow whose layout in memory is known."""

_NOTES = {
    ProbeNote.LEFT_OUT: "left out by --no-probe: only what is in use is known, not the pools",
    ProbeNote.BEING_BUILT: "the probe for TensorFlow {detail} is being built while the script runs; this happens once",
    ProbeNote.NOT_AGAIN: "the probe is not used again: a process ended as it loaded it",
    ProbeNote.TO_BE_LOADED: "the probe is built; it is loaded once TensorFlow has made its devices",
    ProbeNote.ENDED_PROCESS: "the process ended as it loaded the probe ({how}), which is not used again",
    ProbeNote.ENDED_PROCESS_UNMARKED: "the process ended as it loaded the probe ({how}), which is not used again by "
    "this session; the next session tries it again, because this could not be saved: {detail}",
    ProbeNote.NOT_IN_TIME: "the probe was not built within {count} s",
    ProbeNote.NOT_BUILT: "the probe could not be built: {detail}",
}
_STATES = {
    ProbeState.DIRECT: "pools are read in place, without the probe",
    ProbeState.PUBLIC: "without the probe the pools are not known here",
    ProbeState.FAILED: "the probe is not used in this process",
}
_NOT_KNOWN = "how is not known"

PROBE, REPLAY = "the probe", "the replay"
"""The names of what is built: the library that reads pools, and the program that replays allocations."""

NO_COMPILER = "there is no C++ compiler"
_OWN_FOLDER = "set XDG_CACHE_HOME to a folder of your own with room for it"
_OTHERWISE = "name another compiler in CXX, or leave the probe out with --no-probe"

_UNBUILT = {
    Unbuildable.NO_FRAMEWORK: "this TensorFlow has no {file}, through which its allocators would be read",
    Unbuildable.NO_HEADERS: "this TensorFlow came without its C++ headers",
    Unbuildable.NO_COMPILER: NO_COMPILER,
    Unbuildable.COMPILER_SLOW: "the compiler was not done after {count} s",
    Unbuildable.COMPILER_FAILED: "the compiler cannot be started: {detail}",
    Unbuildable.DOES_NOT_COMPILE: "{title} does not compile against this TensorFlow: {detail}",
    Unbuildable.NO_ROOM: "there is no room to build {title}",
    Unbuildable.NOT_KEPT: "{title} cannot be kept in {file}: {detail}",
    Unbuildable.NOT_OURS: "{title} cannot be kept in {file}: the folder belongs to another user",
    Unbuildable.REFUSED: "{title} is not used: a process ended as it loaded it ({how})",
    Unbuildable.TRIAL_SLOW: "a trial of {title} was not done after {count} s",
    Unbuildable.CUT_SHORT: "{title} was built twice, and the linker did not write all of it",
    Unbuildable.TRIAL_KILLED: "{title} was built twice, and its trial was ended by {signal}",
    Unbuildable.TRIAL_ENDED: "{title} was built twice, and failed in a trial with exit code {count}{detail}",
    Unbuildable.DISTRUSTED: "{title} was built twice, and failed in a trial: {trial}",
    Unbuildable.SYSTEM: "{title} could not be built: {detail}",
}
_BRINGS = {
    Unbuildable.NO_HEADERS: "install TensorFlow from its wheel, with pip",
    Unbuildable.NO_COMPILER: "{detail}",
    Unbuildable.NO_ROOM: "make room on the disk of {file}, or set XDG_CACHE_HOME to a folder that has some",
    Unbuildable.NOT_KEPT: _OWN_FOLDER,
    Unbuildable.NOT_OURS: _OWN_FOLDER,
    Unbuildable.REFUSED: "remove {file} to have it tried again",
    Unbuildable.TRIAL_SLOW: _OTHERWISE,
    Unbuildable.CUT_SHORT: _OTHERWISE,
    Unbuildable.TRIAL_KILLED: _OTHERWISE,
    Unbuildable.TRIAL_ENDED: _OTHERWISE,
    Unbuildable.DISTRUSTED: _OTHERWISE,
}

_DISTRUSTED = {
    Fault.FILE_CHANGED: "its file is not the one that was checked",
    Fault.NO_LIBRARY: "its file is no library",
    Fault.WRITABLE: "others may write to its file",
    Fault.NO_MEMFD: "this system's C library has no memfd_create",
    Fault.NO_MEMORY_FILE: "the kernel gives no file in memory to load it from",
    Fault.VERSION: "it has version {0}, and {1} is needed",
    Fault.NO_THREAD: "its thread cannot be started",
    Fault.SYSTEM: "{detail}",
    Fault.TENSORFLOW_UNKNOWN: "TensorFlow's version is not known",
    Fault.LAYOUT_UNKNOWN: f"the memory layout of TensorFlow {{detail}} is not known; that of {LAYOUTS} is",
    Fault.NOT_64_BIT: "TensorFlow's layout in memory is known on 64-bit little-endian systems only",
    Fault.MEMORY_CLOSED: "the kernel does not let the process read its own memory",
    Fault.REGIONS: "its regions do not add up to the pool",
    Fault.NAME: "it has no name",
    Fault.DISAGREES: "in use and peak were read as {0} and {1}, TensorFlow says {2} and {3}",
    Fault.IMPLAUSIBLE: "its figures are impossible: in use {0}, peak {1}, pool {2}, peak pool {3}, limit {4}",
    Fault.FOUND_GPUS: "it finds GPU allocators where there are none",
    Fault.FOUND_NONE: "it does not find TensorFlow's allocator",
    Fault.MISCOUNTED: "{0} bytes were in use, and it read {1}, and {2} in the map",
    Fault.WINDOW: "{0} allocations were made, and a window tells of {detail}",
    Fault.ANSWERS: "its answers are wrong: {detail}",
    Fault.REPLAY: "it gave no answer: {detail}",
}


def probe_text(told: Probe) -> str:
    """Return how far the probe is, or what is wrong with it: one clause, empty where only its state is known."""
    if told.note is not None:
        how = _NOT_KNOWN if told.signal is None else signal_name(told.signal)
        return _NOTES[told.note].format(detail=told.detail or "it printed nothing", how=how, count=told.count)
    if told.unbuilt is not None:
        return unbuilt_text(told.unbuilt, PROBE)
    if told.distrust is not None:
        return f"{_STATES.get(told.state, told.state.value)}: {distrust_text(told.distrust)}"
    return _STATES[told.state] if told.state is ProbeState.DIRECT else ""


def probe_remedy(told: Probe) -> str:
    """Return what helps if the probe is not used; empty where nothing is known to help."""
    if told.note is ProbeNote.ENDED_PROCESS:
        return f"remove {told.file} to have it tried again, or leave the probe out with --no-probe"
    if told.note is ProbeNote.ENDED_PROCESS_UNMARKED:
        return "leave the probe out with --no-probe"
    return unbuilt_remedy(told.unbuilt) if told.unbuilt is not None else ""


def why_unused(told: Probe | None) -> str:
    """Return why the probe is not used, and what helps: one clause.

    Empty where nothing is known, or where the user left the probe out.
    """
    if told is None or told.note is ProbeNote.LEFT_OUT:
        return ""
    return "; ".join(part for part in (probe_text(told), probe_remedy(told)) if part)


def unbuilt_text(unbuilt: Unbuilt, title: str) -> str:
    """Return why *title*, the probe or the replay, could not be built: one clause."""
    detail = unbuilt.detail
    if unbuilt.why is Unbuildable.TRIAL_ENDED:
        detail = f": {detail}" if detail else ""
    return _UNBUILT[unbuilt.why].format(
        title=title,
        detail=detail,
        how=detail or _NOT_KNOWN,
        file=unbuilt.file,
        count=unbuilt.count,
        signal=signal_name(unbuilt.count or 0),
        trial=distrust_text(unbuilt.trial) if unbuilt.trial is not None else _NOT_KNOWN,
    )


def building_text(title: str, version: str) -> str:
    """Return the beginning of a line about a build before a search. *title* is ``PROBE`` or ``REPLAY``."""
    return f"building {title} for TensorFlow {version}; this happens once"


def built_text(seconds: float, *, done: bool) -> str:
    """Return the end of the line that :func:`building_text` begins, after *seconds*. *done*: it was built."""
    return f"{'done' if done else 'failed'} ({seconds:.0f} s)"


def no_prediction(unbuilt: Unbuilt, title: str) -> str:
    """Return the line about a search without predictions, because *title* could not be built."""
    remedy = unbuilt_remedy(unbuilt)
    return f"no limit or value can be predicted: {unbuilt_text(unbuilt, title)}" + (f"; {remedy}" if remedy else "")


def unbuilt_remedy(unbuilt: Unbuilt) -> str:
    """Return what helps if a build failed; empty where nothing is known to help."""
    return _BRINGS.get(unbuilt.why, "").format(detail=unbuilt.detail, file=unbuilt.file)


def distrust_text(distrust: Distrust) -> str:
    """Return why figures or a library are not trusted: one clause."""
    text = _DISTRUSTED[distrust.fault].format(*_counts(distrust.figures), detail=distrust.detail)
    return f"{distrust.device}: {text}" if distrust.device else text


_MOST_FIGURES = 5


def _counts(figures: Sequence[int | None]) -> list[str]:
    """Return *figures* as text, with dashes for those that are missing."""
    told = [UNKNOWN if figure is None else format_count(figure) for figure in figures[:_MOST_FIGURES]]
    return told + [UNKNOWN] * (_MOST_FIGURES - len(told))
