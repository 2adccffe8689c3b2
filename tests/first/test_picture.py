"""The first picture equals, cell by cell, what the screen then draws."""

import pytest
from rich.style import Style
from textual.pilot import Pilot

from tests import streams as s
from tests.ui.recorded import Recorded
from tfmemtop import events
from tfmemtop.first.cards import Card
from tfmemtop.first.draw import Line, picture
from tfmemtop.first.processes import CardProcess
from tfmemtop.options import ScreenOutcome, UiOptions
from tfmemtop.ui.app import TfmemtopApp

MIB, GIB = 1 << 20, 1 << 30
BEGAN = 1.7e9


def cards(
    count: int, used: int = 2867 * MIB, pids: tuple[int, ...] = (4299,), total: int = 143_771 * MIB
) -> list[Card]:
    """Return *count* cards, each an H200; the processes *pids* hold memory on the first. Sizes are bytes."""
    held = {pid: (used - 600 * MIB) // (at + 2) for at, pid in enumerate(pids)}
    free = max(0, total - used - 615 * MIB)
    return [Card(n, "NVIDIA H200", total, used, free, 45, 22, 269.4, 42, held if n == 0 else {}) for n in range(count)]


def rows(found: list[Card]) -> list[CardProcess]:
    return [
        CardProcess(one.number, pid, "ada", held, 1600 * MIB, 3725.0, "train.py --epochs 30")
        for one in found
        for pid, held in sorted(one.processes.items(), key=lambda item: (-item[1], item[0]))
    ]


def stream(found: list[Card]) -> list[events.Event]:
    """Return the events that the engine sends for the same cards."""
    told: list[events.Event] = [s.session(command=[])]
    for one in found:
        uuid, reserved = f"u{one.number}", one.total - one.used - one.free
        told.append(
            events.Device(t=0.0, index=one.number, uuid=uuid, name=one.name, total=one.total, reserved=reserved)
        )
        shares = [events.DeviceProcess(pid, held, None, None) for pid, held in one.processes.items()]
        told.append(
            events.DeviceReading(
                t=0.5, index=one.number, used=one.used, free=one.free, utilisation=one.utilisation,
                bandwidth=one.bandwidth, power_w=one.power_w, temperature_c=one.temperature_c, processes=shares,
            )
        )  # fmt: skip
    shown = {row.pid: row for row in rows(found)}
    command, began = ["/opt/bin/python3", "-u", "/home/ada/train.py", "--epochs", "30"], BEGAN + 0.5 - 3725.0
    told += [
        events.Process(t=0.5, pid=pid, ppid=1, user="ada", command=command, started=began, run=None) for pid in shown
    ]
    figures = [events.ProcessReading(pid=pid, cpu=None, rss=1600 * MIB) for pid in shown]
    return [*told, events.ProcessReadings(t=0.5, processes=figures, host_used=8 * GIB, host_cpu=2.0)]


Cell = tuple[str, str]
"""A character, and its look: the numbers of an SGR sequence, sorted as text and joined by semicolons."""


def cells(line: Line, width: int) -> list[Cell]:
    found = [(character, ";".join(sorted(look.split(";")))) for text, look in line for character in text]
    return found + [(" ", "")] * (width - len(found))


def look(style: Style | None) -> str:
    """Return *style*'s colour and attributes as the look of a cell. Its background must be the terminal's own."""
    if style is None:
        return ""
    numbers = ["1"] * bool(style.bold) + ["7"] * bool(style.reverse)
    if style.color is not None and style.color.number is not None:
        numbers.append(str(30 + style.color.number if style.color.number < 8 else 82 + style.color.number))
    return ";".join(sorted(numbers))


async def drawn(pilot: Pilot[ScreenOutcome]) -> list[list[Cell]]:
    """Return the cells of the screen's first frame with figures, line by line."""
    await pilot.pause()
    strips = pilot.app.screen._compositor.render_strips()
    width = pilot.app.size.width
    return [[(c, look(p.style)) for p in strip for c in p.text][:width] for strip in strips]


def differ(before: list[Cell], after: list[Cell]) -> list[int]:
    """Return the columns in which a line of the picture, *before*, differs from the screen's line, *after*.

    Where the picture has a blank, a dot of a graph or a blank of another look on the screen is no difference: the
    area of the graph may have begun.
    """
    return [
        x
        for x, (one, other) in enumerate(zip(before, after, strict=True))
        if one != other and not (one[0] == " " and ("\u2800" <= other[0] <= "\u28ff" or other[0] == " "))
    ]


CASES = {
    "one card": cards(1),
    "one card, idle": cards(1, used=0, pids=()),
    "one card, full, more processes than rows": cards(1, used=139 * GIB, pids=tuple(range(4000, 4060))),
    "two cards": cards(2),
    "four cards": cards(4, used=70 * GIB),
    "eight cards": cards(8),
    "a small card": cards(1, used=900 * MIB, total=8 * GIB),
}
SIZES = ((40, 12), (60, 20), (80, 24), (100, 30), (120, 40), (160, 48), (250, 70))


@pytest.mark.screens
@pytest.mark.parametrize(("columns", "lines"), SIZES)
@pytest.mark.parametrize("case", CASES)
async def test_it_is_what_the_screen_then_draws(case: str, columns: int, lines: int) -> None:
    found = CASES[case]
    before = [cells(line, columns) for line in picture(found, rows(found), columns, lines)]
    app = TfmemtopApp(Recorded(stream(found)), UiOptions(notify=False))
    async with app.run_test(size=(columns, lines)) as pilot:
        after = await drawn(pilot)
    clock = columns - len(" 12:00:00 ")
    before[0][clock:] = after[0][clock:] = []
    for y, (one, other) in enumerate(zip(before, after, strict=True)):
        texts = ["".join(character for character, _ in cells) for cells in (one, other)]
        assert not differ(one, other), f"line {y}: {differ(one, other)}\n{texts[0]}\n{texts[1]}"
