"""The report on the buffers of a window, each from its allocation to its release, as text and as JSON. Pure."""

from typing import Any

from tfmemtop.findings.holders import buffer as buffer_name
from tfmemtop.findings.holders import kind
from tfmemtop.findings.names import frames, spot
from tfmemtop.reports.holders import about, end_of_name, wrap
from tfmemtop.safe import safe
from tfmemtop.state.holder_choice import Chosen
from tfmemtop.state.holders import By, standing
from tfmemtop.state.lifetimes import Lifetime, Lifetimes, lifetimes
from tfmemtop.units import aligned, counted, duration, format_bytes

_ROWS = 60
_NAME, _BAR = 36, 40  # characters
_PEAK = "┊"


def table(one: Chosen) -> list[str]:
    """Return the largest buffers of a window as lines of text, each with a bar over the window's time."""
    shown = lifetimes(one.window, one.hooked)
    listed, others = shown.buffers[:_ROWS], shown.buffers[_ROWS:]
    head = about(one, (), standing(one.window, one.hooked, By.KIND), "at the peak")
    head += (
        f" The column of bars spans {duration(shown.whole_us)}; {_PEAK} is the peak, after {duration(shown.peak_us)}."
    )
    rows = [_cells(shown, each) for each in listed]
    lines = [*wrap(head), ""]
    lines += aligned([("BUFFER", "KIND", "BYTES", _bar(shown, range(0)), "LINE"), *rows], {0, 1, 3, 4})
    if others:
        size = format_bytes(sum(each.part.bytes for each in others))
        lines += ["", f"{counted(len(others), 'smaller buffer')}, {size} in all, not all at one time: see --json."]
    return lines


def to_json(one: Chosen) -> dict[str, Any]:
    """Return all buffers as keys and values. ``from`` and ``to`` are seconds of the session."""
    shown, began = lifetimes(one.window, one.hooked), one.window.began

    def at(us: int | None) -> float | None:
        return None if us is None else round(began + us / 1e6, 6)

    return {
        "device": one.device,
        "peak": one.window.peak,
        "at": at(shown.peak_us),
        "buffers": [
            {
                "name": buffer_name(each.part),
                "kind": each.part.kind.value,
                "bytes": each.part.bytes,
                "from": at(each.from_us),
                "to": at(each.to_us),
                "line": _line(each),
                "stack": frames(each.part.line),
            }
            for each in shown.buffers
        ],
    }


def _cells(shown: Lifetimes, each: Lifetime) -> tuple[str, ...]:
    name = end_of_name(safe(buffer_name(each.part)), _NAME)
    bar = _bar(shown, shown.cells(each, _BAR))
    return name, kind(each.part.kind), format_bytes(each.part.bytes), bar, _line(each)


def _bar(shown: Lifetimes, used: range) -> str:
    peak = shown.cell(shown.peak_us, _BAR)
    return "".join("█" if cell in used else _PEAK if cell == peak else " " for cell in range(_BAR))


def _line(each: Lifetime) -> str:
    return spot(each.part.line.file, each.part.line.line) if each.part.line else ""
