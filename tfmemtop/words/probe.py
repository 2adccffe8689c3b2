"""What is said of the probe, the native library that reads pools from inside. Pure."""

from tfmemtop.events import Probe, ProbeNote
from tfmemtop.words.signals import signal_name

_TEXTS = {
    ProbeNote.LEFT_OUT: "left out by --no-probe: only what is in use is known, not the pools",
    ProbeNote.BEING_BUILT: "the probe for TensorFlow {detail} is being built while the script runs; this happens once",
    ProbeNote.NOT_AGAIN: "the probe is not used again: a process ended as it loaded it",
    ProbeNote.TO_BE_LOADED: "the probe is built; it is loaded once TensorFlow has made its devices",
    ProbeNote.ENDED_PROCESS: "the process ended as it loaded the probe ({how}), which is not used again",
    ProbeNote.ENDED_PROCESS_UNMARKED: "the process ended as it loaded the probe ({how}), which is not used again by "
    "this session; the next session tries it again, as this could not be written down: {detail}",
    ProbeNote.NOT_IN_TIME: "the probe was not built within {count} s",
    ProbeNote.NOT_BUILT: "the probe could not be built: {detail}",
}


def probe_text(told: Probe) -> str:
    """How far it is, or what is wrong with it: one clause, empty where nothing but its state is known."""
    if told.note is None:
        return told.text
    how = "how is not known" if told.signal is None else signal_name(told.signal)
    return _TEXTS[told.note].format(detail=told.detail or "it printed nothing", how=how, count=told.count)


def probe_remedy(told: Probe) -> str:
    """What helps; empty where nothing is known to."""
    if told.note is ProbeNote.ENDED_PROCESS:
        return f"remove {told.file} to have it tried again, or leave the probe out with --no-probe"
    return "leave the probe out with --no-probe" if told.note is ProbeNote.ENDED_PROCESS_UNMARKED else told.remedy
