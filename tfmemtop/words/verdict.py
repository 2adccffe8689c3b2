"""The text of the verdict on a run, in two lines at most. Pure."""

import signal
import textwrap
from collections.abc import Iterator

from tfmemtop.findings.verdict import Unread, Verdict
from tfmemtop.units import format_bytes
from tfmemtop.words.endings import ended
from tfmemtop.words.safe import safe

_STOPPED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""The signals that end a run on purpose."""

WIDTH = 96
LINES = 2


def say_verdict(verdict: Verdict) -> str:
    """Return the fullest text of the verdict that fits into two lines of 96 characters."""
    for text in (safe(" ".join(way.split())) for way in _ways(verdict)):
        if _fits(text):
            return text
    while ". " in text:  # even the shortest is too long: its last sentences are left out
        text = text[: text.rindex(". ") + 1]
        if _fits(text):
            return text
    return textwrap.shorten(text, WIDTH * LINES - LINES, placeholder=" …")


def _fits(text: str) -> bool:
    return len(textwrap.wrap(text, WIDTH)) <= LINES


def _ways(verdict: Verdict) -> Iterator[str]:
    """Yield the possible texts of the verdict, the fullest first."""
    first = verdict.first.said.headline if verdict.first is not None else _nothing(verdict)
    if not verdict.explained:
        how = ended(verdict.how, running=verdict.running, left=verdict.left)
        run = f"Run {verdict.run}{'' if verdict.how else ':'} {how}"
        yield f"{run}. {_held(verdict)} {first}"
        if verdict.peaks.in_use is not None:
            yield f"{run}. At most {format_bytes(verdict.peaks.in_use)} were in use{_on_one(verdict)}. {first}"
        yield f"{run}. {first}"
    yield first


def _on_one(verdict: Verdict) -> str:
    return " on a GPU" if verdict.peaks.several else ""


_UNREAD = {
    Unread.NO_TENSORFLOW: "tfmemtop saw no process use TensorFlow.",
    Unread.NO_CPU_POOL: "On the CPU tfmemtop reads TensorFlow's memory only in a BFC pool: add --cpu-pool SIZE.",
    Unread.UNKNOWN: "No memory of TensorFlow was read.",
}


def _nothing(verdict: Verdict) -> str:
    if verdict.unread is not None:
        return ""
    if verdict.how is not None and verdict.how.good:
        return "Nothing needs to be changed."
    if verdict.running:
        return "So far no setting needs a change."
    stopped = verdict.how is None or verdict.how.signal in _STOPPED
    return "Up to then no setting needed a change." if stopped else "Its memory does not explain that."


def _held(verdict: Verdict) -> str:
    peaks = verdict.peaks
    if verdict.unread is not None:
        return _UNREAD[verdict.unread]
    held = ""
    if peaks.process_total:
        held = f"It held up to {format_bytes(peaks.process_total)} {'on a GPU' if peaks.several else 'of the GPU'}"
    if peaks.in_use is None:
        return f"{held}."
    use = f"at most {format_bytes(peaks.in_use)} were in use"
    if peaks.pool is not None:
        use += f" in a pool of {format_bytes(peaks.pool)}"
    return f"{held}; {use}." if held else f"{use[0].upper()}{use[1:]}."
