"""The text about the probe, the native library that reads pools from inside, and ways to work without it. Pure."""

from collections.abc import Sequence

from tfmemtop.events import Distrust, Probe, ProbeNote, ProbeState, Unbuildable, Unbuilt
from tfmemtop.exit_codes import signal_name
from tfmemtop.units import UNKNOWN, format_count

_STATES = {
    ProbeState.DIRECT: "pools are read in place, without the probe",
    ProbeState.PUBLIC: "without the probe the pools are not known here",
    ProbeState.FAILED: "the probe is not used in this process",
}
_NOT_KNOWN = "how is not known"

PROBE, REPLAY = "the probe", "the replay"
"""The names of what is built: the library that reads pools, and the program that replays allocations."""

_OWN_FOLDER = "set XDG_CACHE_HOME to a folder of your own with room for it"
_OTHERWISE = "name another compiler in CXX, or leave the probe out with --no-probe"


_BRINGS = {
    Unbuildable.NO_HEADERS: "install TensorFlow from its wheel, with pip",
    Unbuildable.NO_COMPILER: "{detail}",
    Unbuildable.NO_ROOM: "make room on the disk of {file}, or set XDG_CACHE_HOME to a folder that has some",
    Unbuildable.NOT_KEPT: _OWN_FOLDER,
    Unbuildable.NOT_OURS: _OWN_FOLDER,
    Unbuildable.REFUSED: "remove {file} to have it tried again",
    Unbuildable.TRIAL_SLOW: _OTHERWISE,
    Unbuildable.TRIAL_KILLED: _OTHERWISE,
    Unbuildable.TRIAL_ENDED: _OTHERWISE,
    Unbuildable.DISTRUSTED: _OTHERWISE,
}


def probe_text(told: Probe) -> str:
    """Return how far the probe is, or what is wrong with it: one clause, empty where only its state is known."""
    if told.note is not None:
        how = _NOT_KNOWN if told.signal is None else signal_name(told.signal)
        return told.note.text.format(detail=told.detail or "it printed nothing", how=how, count=told.count)
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
    return unbuilt.why.text.format(
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
    text = distrust.fault.text.format(*_counts(distrust.figures), detail=distrust.detail)
    return f"{distrust.device}: {text}" if distrust.device else text


_MOST_FIGURES = 5


def _counts(figures: Sequence[int | None]) -> list[str]:
    """Return *figures* as text, with dashes for those that are missing."""
    told = [UNKNOWN if figure is None else format_count(figure) for figure in figures[:_MOST_FIGURES]]
    return told + [UNKNOWN] * (_MOST_FIGURES - len(told))
