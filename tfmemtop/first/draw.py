"""The first picture as text: the cards and their processes as the screen draws them, without Textual and Rich.

A line is a list of pieces. Each piece is a text and its look, which is the numbers of an SGR sequence.
"""

import time

from tfmemtop.first.cards import Card, Strange
from tfmemtop.first.processes import CardProcess
from tfmemtop.ui.draw.layout import AROUND, GAP, DeviceLayout, arrange, device_layout, devices_wanted
from tfmemtop.units import UNKNOWN, format_bytes, format_duration, format_short

Line = list[tuple[str, str]]

PLAIN, DIM, BOLD, TITLE, OTHERS = "", "90", "1", "1;36", "34"
REVERSE = "7"

KEYS = (
    *(("F1", "help", -1), ("Enter", "account", 1), ("a", "attach", 2), ("o", "sort", 5), ("k", "signal", 4)),
    *(("W", "why", 0), ("s", "scale", 7), ("/", "filter", 6), ("q", "quit", -1)),
)
"""Each key of the last line, its word and its rank, as in ``ui/keys.py``: the highest is left out first."""

# As in ui/panels/process_rows.py: name, cells, rank (the lowest is left out first), and whether aligned to the left.
# The columns about TensorFlow's pools have a rank that is lower by 100, as on the screen where no process has a pool.
_COLUMNS = (
    *(("GPU", 3, 60, False), ("PID", 7, 100, False), ("USER", 8, 50, True), ("GPU-MEM", 7, 80, False)),
    *(("%SM", 3, 40, False), ("%GMBW", 5, 10, False), ("%CPU", 5, 55, False), ("HOST-MEM", 8, 30, False)),
    *(("TF-USE", 7, -10, False), ("TF-POOL", 7, -65, False), ("PEAK", 7, -30, False), ("TIME", 8, 20, False)),
)
_MARKS, _COMMAND = 3, 24
_GUTTER, _NO_GUTTER_BELOW = 8, 32
_HALVINGS, _SPAN = 10, "10 s"
_BAR_LEAST, _BAR_LIKED = 4, 16


def picture(cards: list[Card], rows: list[CardProcess] | None, width: int, height: int) -> list[Line]:
    """Return the lines of a screen of *width* by *height* cells.

    If *rows* is ``None``, the table is empty, and its title shows no count.

    Raises:
        Strange: there is no card, or a name is not printable ASCII. The screen draws these differently.
    """
    if not cards:
        raise Strange("no card")
    if not all(map(_plain, (*(card.name for card in cards), *(row.program + (row.user or "") for row in rows or ())))):
        raise Strange("a name that is not plain")
    shown = len(rows) if rows is not None else sum(len(card.processes) for card in cards)
    heights = arrange(
        width,
        height - AROUND,
        devices_wanted=lambda lines: devices_wanted(len(cards), width, 1, lines),
        devices=len(cards),
        processes=shown,
        why_wanted=0,
        allocators=False,
        output=False,
    )
    lines = [_header(width), *_devices(cards, width, heights.devices), *_table(rows, width, heights.processes)]
    lines += [[]] * (height - 1 - len(lines))
    return [_cut(line, width) for line in (*lines[: height - 1], _keys(width))]


def written(lines: list[Line]) -> str:
    """Return the characters and sequences that draw *lines* on a terminal, from its first row on."""
    drawn = []
    for y, line in enumerate(lines):
        drawn.append(f"\x1b[{y + 1};1H")
        drawn += [f"\x1b[{look}m{text}\x1b[0m" if look else text for text, look in line if text]
    return "".join(drawn)


def _plain(text: str) -> bool:
    return text.isascii() and (text.isprintable() or not text)


def _width(line: Line) -> int:
    return sum(len(text) for text, _ in line)


def _cut(line: Line, width: int) -> Line:
    kept: Line = []
    for text, look in line:
        kept.append((text[: max(0, width - _width(kept))], look))
    return kept


def _fit(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(0, width - 1)].rstrip() + "…" if width > 0 else ""


def _header(width: int) -> Line:
    left: Line = [(" tfmemtop ", TITLE), ("  every process on the GPUs", PLAIN)]
    clock: Line = [(time.strftime(" %H:%M:%S "), DIM)]
    gap = width - _width(left) - _width(clock)
    return [*left, (" " * gap, PLAIN), *clock] if gap >= 0 else left


def _title(width: int, title: str, right: str, look: str = TITLE) -> Line:
    left = f" {_fit(title, max(4, width - 4))} "
    room = width - 2 - len(left) - (len(right) + 3 if right else 0)
    if right and room < 1:
        right, room = "", width - 2 - len(left)
    line: Line = [("──", DIM), (left, look), ("─" * max(0, room), DIM)]
    return [*line, (f" {right} ", PLAIN), ("─", DIM)] if right else line


# The cards.


def _devices(cards: list[Card], width: int, height: int) -> list[Line]:
    layout, columns = device_layout(len(cards), width, height)
    if layout is DeviceLayout.LINE:
        return _a_line_each(cards, width, height)
    room = max(len(_usage(card)) for card in cards)
    across = width - GAP * (columns - 1)
    widths = [(at + 1) * across // columns - at * across // columns for at in range(columns)]
    stacked = -(-len(cards) // columns)
    lines: list[Line] = []
    for row in range(stacked):
        share = (row + 1) * height // stacked - len(lines)
        beside = cards[row * columns : (row + 1) * columns]
        blocks = [_device(card, layout, room, wide, share) for card, wide in zip(beside, widths, strict=False)]
        for y in range(max(map(len, blocks))):
            line: Line = []
            for at, block in enumerate(blocks):
                part = block[y] if y < len(block) else []
                line += [(" " * GAP, PLAIN)] * (at > 0) + part + [(" " * (widths[at] - _width(part)), PLAIN)]
            lines.append(line)
    if layout is DeviceLayout.BAR:
        lines.append(_legend_of_all(width))
    return lines


def _a_line_each(cards: list[Card], width: int, height: int) -> list[Line]:
    titled = height > 1
    rows = min(len(cards), height - titled)
    hidden = f"▾ {len(cards) - rows} more" if len(cards) > rows else ""
    lines = [_title(width, "GPUs", hidden)] if titled else []
    names = [f"GPU {card.number} {card.name}".replace("NVIDIA ", "") for card in cards]
    name_room = min(max(map(len, names)), max(5, width // 4))
    usages = [_short_usage(card) for card in cards]
    usage_room = max(map(len, usages))
    free = width - name_room - usage_room - 4
    facts = _columns([_activity(card) for card in cards], free - _BAR_LIKED)
    for card, name, usage, fact in list(zip(cards, names, usages, facts, strict=True))[:rows]:
        room = free - len(fact)
        line: Line = [(f" {_fit(name, name_room):<{name_room}} ", PLAIN)]
        line += _bar(card, room) if room >= _BAR_LEAST else [(" " * max(0, room), PLAIN)]
        lines.append([*line, (f" {usage:>{usage_room}} ", BOLD), (fact, DIM)])
    if height >= len(lines) + 1:
        lines.append(_legend_of_all(width))
    return lines


def _columns(facts: list[tuple[str, ...]], room: int) -> list[str]:
    """Return a text for each card: its facts in columns, as wide for every card, as many as fit in *room* cells."""
    for chosen in (facts, [(row[0], row[-1]) for row in facts], [row[:1] for row in facts]):
        widths = [max(map(len, column)) for column in zip(*chosen, strict=True)]
        if sum(widths) + 2 * len(widths) <= room:
            return [
                "".join(f" {_padded(fact, wide)} " for fact, wide in zip(row, widths, strict=True)) for row in chosen
            ]
    return [""] * len(facts)


def _padded(fact: str, width: int) -> str:
    """Return *fact* in *width* cells, with its figure at the right: ``util   5%``."""
    missing = " " * (width - len(fact))
    word, space, figure = fact.partition(" ")
    return missing + fact if fact[:1].isdigit() else word + missing + space + figure


def _short_usage(card: Card) -> str:
    used, whole = format_short(card.used), format_short(card.total)
    return f"{used[:-1] if used[-1:] == whole[-1:] else used}/{whole}"


def _activity(card: Card) -> tuple[str, ...]:
    busy = (f"util {card.utilisation}%", f"mem {card.bandwidth}%")
    return (*busy, f"{card.power_w:.0f} W", f"{card.temperature_c} °C")


def _device(card: Card, layout: DeviceLayout, room: int, width: int, height: int) -> list[Line]:
    if width >= room + _BAR_LEAST:
        bar = [(" ", PLAIN), *_bar(card, width - room - 3), (f" {_usage(card):>{room}} ", BOLD)]
    else:
        bar = _bar(card, width)
    lines = [_title(width, f"GPU {card.number} {card.name}", " · ".join(_activity(card))), bar]
    if layout is not DeviceLayout.BAR:
        lines.append(
            [
                *((" ", PLAIN), ("░", OTHERS), (" processes", DIM), (f" {format_short(card.used):<6}  ", PLAIN)),
                *(("·", DIM), (f" free {format_short(card.free):<6}  ", DIM)),
            ]
        )
    if layout is DeviceLayout.GRAPH:
        lines += [[(" ", PLAIN), *line] for line in _graph(card, width - 2, height - len(lines))]
    return lines


def _usage(card: Card) -> str:
    used, whole = format_bytes(card.used), format_bytes(card.total)
    return f"{used.removesuffix(' ' + whole.rpartition(' ')[2])} of {whole}"


def _bar(card: Card, width: int) -> Line:
    inner = width - 2
    if inner < 1:
        return [(" " * max(0, width), PLAIN)]
    rest = card.total - card.used - card.free
    free = card.free + (rest if rest * inner < card.total else 0)
    ends = [2 * end * inner + card.total for end in (card.used, card.used + free)]
    used_end, free_end = (end // (2 * card.total) for end in ends)
    # A part above 0 bytes has at least one cell, as long as there are enough.
    used_end = max(used_end, int(card.used > 0))
    free_end = min(inner, max(free_end, used_end + int(free > 0)))
    last = inner - int(card.used + free < card.total)
    free_end = min(free_end, last)
    used_end = min(used_end, free_end - int(free > 0))
    bar: Line = [("▐", DIM), ("░" * used_end, OTHERS), ("·" * (free_end - used_end), DIM)]
    return [*bar, (" " * (inner - free_end), PLAIN), ("▌", DIM)]


def _legend_of_all(width: int) -> Line:
    line: Line = [(" ", PLAIN)]
    names = (("█", "in use", "32"), ("▓", "cached", "33"), ("▒", "context+outside", "35"), ("░", "others", OTHERS))
    for glyph, name, look in (*names, ("·", "free", DIM), ("▏", "limit", "31")):
        if _width(line) + len(name) + 4 > width:
            break
        line += [(glyph, look), (f" {name}  ", DIM)]
    return line


def _graph(card: Card, width: int, height: int) -> list[Line]:
    """Return the scale and the axis of the graph, which has no readings yet."""
    gutter = _GUTTER if width >= _NO_GUTTER_BELOW else 0
    cells, rows = width - gutter, height - 1
    if cells < 1 or rows < 1:
        return []
    halvings = _HALVINGS
    while halvings > 0 and 4 * card.used > 3 * max(1, card.total >> halvings):
        halvings -= 1
    top = max(1, card.total >> halvings)
    lines: list[Line] = []
    for row in range(rows):
        middle = rows >= 7 and row == rows // 2
        figure = format_short(top) if row == 0 else format_short(top // 2) if middle else ""
        line: Line = [(f"{figure:>6} {'┤' if figure else '│'}", DIM)] if gutter else []
        note = f"▲ card {format_short(card.total)}"
        if row == 0 and halvings and cells >= len(note):
            line += [(" " * (cells - len(note)), PLAIN), (note, PLAIN)]
        lines.append(line)
    whole = format_short(card.total)
    said = f" scale: 1/{1 << halvings} of {whole} " if halvings else f" scale: all {whole} "
    right = cells - len(_SPAN) - 2
    at = right - len(said) - 1
    axis: Line = [(f"{'0':>6} └", DIM)] if gutter else []
    axis += [("─" * at, DIM), (said, PLAIN), ("─", DIM)] if at >= 0 else [("─" * right, DIM)]
    return [*lines, [*axis, (f" {_SPAN} ", PLAIN)]]


# The processes.


def _table(rows: list[CardProcess] | None, width: int, height: int) -> list[Line]:
    if not height:
        return []
    title = "Processes" if rows is None else f"Processes {len(rows)}"
    columns, room = _laid_out(width)
    head: Line = [(" " * _MARKS, PLAIN)]
    for name, wide, _, left in columns:
        look = "1;7" if name == "GPU" else BOLD
        pad = " " * (wide - len(name))
        head += [(name, look), (f"{pad} ", PLAIN)] if left else [(pad, PLAIN), (name, look), (" ", PLAIN)]
    head.append((_fit("COMMAND", room), BOLD))
    lines = [_title(width, title, "sort GPU ▲", f"{TITLE};{REVERSE}"), head]
    for at, row in enumerate((rows or ())[: max(0, height - 2)]):
        lines.append(_row(row, columns, room, chosen=at == 0))
    if rows is not None and not rows:
        lines.append([(_fit("   no process holds GPU memory", width), DIM)])
    return lines[:height]


def _laid_out(width: int) -> tuple[list[tuple[str, int, int, bool]], int]:
    """Return the columns that fit, and how many cells are left for the command."""
    shown = list(_COLUMNS)

    def need(rest: int) -> int:
        return _MARKS + sum(column[1] + 1 for column in shown) + rest

    while len(shown) > 1 and need(min(_COMMAND, width * 3 // 10)) > width:
        shown.remove(min(shown, key=lambda column: column[2]))
    return shown, max(0, width - need(0))


def _row(row: CardProcess, columns: list[tuple[str, int, int, bool]], room: int, *, chosen: bool) -> Line:
    lasted = None if row.elapsed_s is None else format_duration(row.elapsed_s)
    texts = {
        "GPU": str(row.gpu),
        "PID": str(row.pid),
        "USER": row.user,
        "GPU-MEM": format_short(row.held),
        "HOST-MEM": None if row.rss is None else format_short(row.rss),
        "TIME": lasted if lasted is None or len(lasted) <= 8 else lasted.partition(" ")[0],
    }
    line: Line = [(" " * _MARKS, PLAIN)]
    for name, wide, _, left in columns:
        text = texts.get(name)
        look = DIM if text is None else PLAIN
        cell = _fit(UNKNOWN if text is None else text, wide)
        line.append((f"{cell:<{wide}} " if left else f"{cell:>{wide}} ", look))
    line.append((row.program[:room].ljust(room), PLAIN))
    return [("".join(text for text, _ in line), REVERSE)] if chosen else line


# The keys.


def _keys(width: int) -> Line:
    keys = list(KEYS)
    while keys and sum(len(key) + len(word) + 3 for key, word, _ in keys) - 1 > width:
        keys.remove(max(keys, key=lambda one: one[2]))
    line: Line = [(" ", PLAIN)]
    for key, word, _ in keys:
        line += [(key, TITLE), (f" {word}  ", PLAIN)]
    return line
