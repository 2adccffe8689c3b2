"""The panel of the devices: who holds the memory of each GPU, or of TensorFlow's CPU pool.

With enough room each device has a title, a bar, a legend and a graph. With less room, the graphs shrink first. Then
the devices stand side by side, if the screen is wide. Then only the devices that the script uses most have a graph,
and the others are a line each. Then the graphs are left out, then one legend serves all devices. With little room each
device is a single line, and with even less these lines scroll.
"""

from collections.abc import Sequence
from itertools import pairwise, zip_longest
from typing import ClassVar

from msgspec.structs import replace
from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType

from tfmemtop.reports.devices import activity, note, title
from tfmemtop.safe import safe
from tfmemtop.state import State
from tfmemtop.state.views import DevicePanel, host_panel, panels, seconds_a_step
from tfmemtop.state.waiting import waiting
from tfmemtop.ui import waiting as waiting_words
from tfmemtop.ui.draw.bar import bar, legend, note_line, shared_legend, short_usage, usage
from tfmemtop.ui.draw.glyphs import MORE, UP
from tfmemtop.ui.draw.graph import Graph, area_cells, run_starts, steps_top_s
from tfmemtop.ui.draw.layout import (
    GAP,
    GRAPH_LEAST,
    WORDS_MOST,
    DeviceLayout,
    device_layout,
    devices_wanted,
    with_graphs,
)
from tfmemtop.ui.draw.lines import Line, Panel, fit, width_of
from tfmemtop.ui.draw.palette import BOLD, DIM, PLAIN
from tfmemtop.ui.draw.scale import ScaleChoice
from tfmemtop.ui.draw.text import wrap
from tfmemtop.ui.draw.window import FIRST, SPANS, ChosenMoment, Window, moment_facts, newest, whole, young
from tfmemtop.ui.keys import Hints
from tfmemtop.ui.screens import Changed
from tfmemtop.units import duration

_BAR_LEAST, _BAR_LIKED = 4, 16  # cells
_FAR = 100_000  # columns: more than any graph has
_SEPARATOR = " · "


class DevicesPanel(Panel, can_focus=True):
    """The panel of all devices. While it has the focus, the user chooses a moment on the graphs."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(-1)", show=False),
        Binding("right", "move(1)", show=False),
        Binding("home", f"move(-{_FAR})", show=False),
        Binding("end,n", f"move({_FAR})", show=False),
        Binding("enter", "screen.holders_then", show=False),
        Binding("escape", "screen.leave_graph", show=False),
    ]

    def __init__(
        self,
        *,
        steers: bool = False,
        scale: ScaleChoice = ScaleChoice.AUTO,
        steps: bool = False,
        braille: bool = True,
    ) -> None:
        """*steers*: whether the keys for the next run have an effect. *scale* is the graphs' first scale.

        *steps*: whether they begin with a line of the time that a step takes. Without *braille* the
        graphs are made of letters.
        """
        super().__init__()
        self._span: int | None = None
        self._whole_going = False
        self._scrolls_after: int | None = None  # the ended run of which the user wants to see only the newest time
        self.scale = scale
        self.steps = steps
        self.moment = ChosenMoment()
        self._areas: list[range] = []  # the cells of the panel that are columns of a graph, for each graph of a row
        self._steers = steers
        self._braille = braille
        self._graphs: dict[str, Graph] = {}
        self._offset = 0

    @property
    def span(self) -> int:
        """Index in ``SPANS`` of the graphs' span: the user's choice, else five minutes."""
        return FIRST if self._span is None else self._span

    @property
    def whole(self) -> bool:
        """Whether the graphs show the whole run.

        While the run goes on, they do so only if the user wants it; after its end, unless the user does not want it.
        """
        run = self.state.run
        return self._whole_going if run is None or run.going else self._scrolls_after != run.run

    def toggle_whole(self) -> None:
        """Show the whole run; or, if it is shown, the newest time again."""
        run = self.state.run
        if run is None or run.going:
            self._whole_going = not self._whole_going
        else:
            self._scrolls_after = run.run if self.whole else None
        self.redraw()

    def cycle_span(self, step: int) -> None:
        """Let the graphs span the next longer (+1) or shorter (-1) time; beyond the ends nothing changes.

        If the graphs show the whole run, they show the newest time again instead.
        """
        if self.whole:
            self.toggle_whole()
            return
        self._span = min(max(0, self.span + step), len(SPANS) - 1)
        self.redraw()

    def next_scale(self) -> None:
        """Scale the graphs by the next of :class:`ScaleChoice`."""
        scales = list(ScaleChoice)
        self.scale = scales[(scales.index(self.scale) + 1) % len(scales)]
        self.redraw()

    def toggle_steps(self) -> None:
        """Draw the line of the steps' time, or leave it out."""
        self.steps = not self.steps
        self.redraw()

    # The chosen moment.

    @property
    def mode(self) -> Hints:
        """The keys while the user chooses a moment, else none."""
        keys = (("← →", "moment"), ("Enter", "holders then"), ("n", "now"), ("t", "step time"), ("[ ]", "span"))
        return [("Esc", "back"), *keys] if self.has_focus else []

    def allow_focus(self) -> bool:
        return bool(self.moment.times)

    def action_move(self, count: int) -> None:
        self.moment.move(count)
        self.redraw()

    def on_focus(self) -> None:
        self.post_message(Changed())

    def on_blur(self) -> None:
        if self.app.app_focus:  # else the terminal has lost the focus, not the panel
            self.moment.t = None
        self.post_message(Changed())

    def on_click(self, event: events.Click) -> None:
        for area in self._areas:
            if event.x in area:
                self.moment.choose(event.x - area.start)
                self.redraw()

    def scroll_lines(self, count: int) -> None:
        """Scroll by *count* devices, if not all of them have room."""
        self._offset = max(0, self._offset + count)
        self.redraw()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.scroll_lines(1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.scroll_lines(-1)

    def wanted_height(self, state: State, width: int, available: int) -> int:
        """Return how many of *available* lines the devices of *state* can use well; other panels need the rest more."""
        shown = panels(state)
        if not shown:
            return len(self._without_gpu(state, width, available))
        return devices_wanted(len(shown), width, available)

    def build(self, width: int, height: int) -> list[Line]:
        shown = panels(self.state)
        for key in self._graphs.keys() - {panel.key for panel in shown}:
            del self._graphs[key]
        self.moment.times, self._areas = [], []
        if not shown:
            lines = [_exactly(line, width) for line in self._without_gpu(self.state, width, height)]
        elif graphs := _first_used(shown, with_graphs(len(shown), width, height)):
            others = [panel for panel in shown if panel not in graphs]
            lines = self._stacked(graphs, width, height - len(others))
            lines += self._a_line_each(others, width, len(others), titled=False) if others else []
        elif device_layout(len(shown), width, height)[0] is DeviceLayout.LINE:
            lines = self._a_line_each(shown, width, height, titled=height > 1)
        else:
            lines = self._stacked(shown, width, height)
        return lines[:height]

    def _without_gpu(self, state: State, width: int, height: int) -> list[Line]:
        """Return the lines shown without a GPU: what is being waited for or is missing, in at most *height* lines."""
        answer, waits = state.notices.get("nvml"), waiting(state)
        texts = waiting_words.without_gpu(waits, self._steers) if answer and waits else ()
        told = [wrap(text, width - 2) for text in texts] or [[]]
        fitting = [lines for lines in told if len(lines) <= min(height - 1, WORDS_MOST)] or told[-1:]
        host = self._host(state, width) if answer else []
        if 1 + len(host) + len(fitting[0]) > height:
            host = []
        right = "" if not host else waiting_words.HOST_MEMORY
        title = self.title_line(width, waiting_words.heading(answer), right)
        return [title, *host, *([Segment(f" {line}")] for line in fitting[0])][:height]

    def _host(self, state: State, width: int) -> list[Line]:
        """Return bar and legend of the host's memory: without a pool, a script allocates everything there.

        There are none if the host's memory is unknown or *width* is too small.
        """
        panel = host_panel(state)
        room = cell_len(usage(panel)) if panel else 0
        if panel is None or width < room + _BAR_LIKED:
            return []
        drawn = [Segment(" "), *bar(panel, width - room - 3, self._braille), Segment(f" {usage(panel)} ", BOLD)]
        return [drawn, *legend(panel, width, 1)]

    def _stacked(self, shown: list[DevicePanel], width: int, height: int) -> list[Line]:
        layout, columns = device_layout(len(shown), width, height)
        room = max(cell_len(usage(panel)) for panel in shown)
        if self.moment.t is not None:
            room = max(room, *(cell_len(usage(replace(panel, used=panel.capacity))) for panel in shown))
        widths = _widths(width, columns)
        if layout is DeviceLayout.GRAPH:
            starts = [sum(widths[:index]) + GAP * index + wide - 1 for index, wide in enumerate(widths)]
            self._areas = [range(stop - area_cells(wide - 2), stop) for stop, wide in zip(starts, widths, strict=True)]
        stacked = -(-len(shown) // columns)
        lines: list[Line] = []
        for row in range(stacked):
            # Each device has an equal share of the height. Lines that cannot be shared equally go to later devices.
            share = (row + 1) * height // stacked - len(lines)
            beside = shown[row * columns : (row + 1) * columns]
            drawn = [
                self._device(panel, layout, room, wide, share) for panel, wide in zip(beside, widths, strict=False)
            ]
            lines += _beside(drawn, widths)
        if layout is DeviceLayout.BAR:
            lines.append(_exactly(shared_legend(shown, width), width))
        return lines

    def _device(self, panel: DevicePanel, layout: DeviceLayout, room: int, width: int, height: int) -> list[Line]:
        """Return the lines of one device, at most *height*. *room* is the width of the longest usage of all devices."""
        window, live = self._window(panel), panel
        if layout is DeviceLayout.GRAPH:
            self.moment.times = window.times(area_cells(width - 2))
        if self.moment.times and self.moment.t is not None:
            panel = self._graph_of(panel).at(panel, window, self.moment.t, width - 2)
        steps = None
        if self.moment.times and self.steps:
            steps = seconds_a_step(self.state, window.edges(area_cells(width - 2)))
        right = self._right(panel, steps, width - cell_len(title(panel)) - 8)
        head = [self.title_line(width, title(panel), right, chosen=self.has_focus)]
        if width >= room + _BAR_LEAST:
            drawn = bar(panel, width - room - 3, self._braille)
            head.append([Segment(" "), *drawn, Segment(f" {usage(panel):>{room}} ", BOLD)])
        else:
            head.append(bar(panel, width, self._braille))
        if layout is DeviceLayout.GRAPH:
            rows = min(WORDS_MOST, height - 2 - GRAPH_LEAST)
            words = self._words(panel, width, rows)
            head += words + [[]] * (len(self._words(live, width, rows)) - len(words))  # the graph keeps its height
        elif layout is DeviceLayout.LEGEND:
            head += self._words(panel, width, 1)
        lines = [_exactly(line, width) for line in head]
        if layout is DeviceLayout.GRAPH:
            graph = self._graph_of(panel).build(
                panel, window, run_starts(self.state), self.scale, width - 2, height - len(head), steps
            )
            # One column stays free on either side, as beside the bar.
            lines += [[Segment(" "), *line, Segment(" ")] for line in graph]
        return lines

    def _right(self, panel: DevicePanel, steps: Sequence[float | None] | None, width: int) -> str:
        """Return how busy a device is now; of a chosen moment its time and figures, as many as fit in *width* cells.

        *steps* are the seconds of a step that the graph shows, ``None`` if it shows none.
        """
        t = panel.moment
        facts = [*activity(panel)] if t is None else moment_facts(self.state, panel, t, self.moment.column)
        if steps is not None and t is None:
            top_s = steps_top_s(steps)
            facts.insert(0, f"steps 0 to {duration(round(top_s * 1e6))}" if top_s else "no steps counted")
        fitting = (_SEPARATOR.join(facts[:count]) for count in range(len(facts), 0, -1))
        return next((text for text in fitting if cell_len(text) <= width), "")

    def _words(self, panel: DevicePanel, width: int, rows: int) -> list[Line]:
        """Return legend and note in at most *rows* lines. With one line, there is a note only if there is no legend."""
        lacking = [note_line(panel, width)] if note(panel) and (rows > 1 or not panel.layers) else []
        return (legend(panel, width, rows - len(lacking)) if panel.layers else []) + lacking

    def _graph_of(self, panel: DevicePanel) -> Graph:
        if panel.key not in self._graphs:
            self._graphs[panel.key] = Graph(self._braille)
        return self._graphs[panel.key]

    def _window(self, panel: DevicePanel) -> Window:
        """Return the time that the graph of *panel* shows."""
        now = self.state.now
        pauses = tuple((run.ended, after.started) for run, after in pairwise(self.state.runs) if run.ended is not None)
        window = newest(self.span, now, pauses)
        if self.whole and panel.whole:
            window = whole(panel.whole, now)
        elif self._span is None and (began_now := young(now, pauses)).span_s <= window.span_s:
            window = began_now
        return window

    def _a_line_each(self, shown: list[DevicePanel], width: int, height: int, *, titled: bool) -> list[Line]:
        rows = min(len(shown), height - titled)
        self._offset = min(self._offset, len(shown) - rows)
        above, below = self._offset, len(shown) - rows - self._offset
        hidden = [f"{UP} {above} more"] * (above > 0) + [f"{MORE} {below} more"] * (below > 0)
        lines = [self.title_line(width, "GPUs", "  ".join(hidden))] if titled else []
        names = [safe(title(panel).replace("NVIDIA ", "")) for panel in shown]
        name_room = min(max(map(cell_len, names)), max(5, width // 4))
        usages = [short_usage(panel) for panel in shown]
        usage_room = max(map(cell_len, usages))
        free = width - name_room - usage_room - 4
        facts = _columns([activity(panel) or (note(panel),) for panel in shown], free - _BAR_LIKED)
        for index in range(above, above + rows):
            panel = shown[index]
            name = set_cell_size(fit(names[index], name_room), name_room)
            room = free - cell_len(facts[index])
            line = [Segment(f" {name} ", PLAIN)]
            line += bar(panel, room, self._braille) if room >= _BAR_LEAST else [Segment(" " * max(0, room))]
            lines.append([*line, Segment(f" {usages[index]:>{usage_room}} ", BOLD), Segment(facts[index], DIM)])
        if height >= len(lines) + 1:
            lines.append(shared_legend(shown, width))
        return [_exactly(line, width) for line in lines]


def _first_used(shown: list[DevicePanel], most: int) -> list[DevicePanel]:
    """Return at most *most* devices, first of those in which TensorFlow's peak is at least half of the highest one."""
    highest = max(panel.peak or 0 for panel in shown)
    used = [panel for panel in shown if 2 * (panel.peak or 0) >= highest]
    return used[:most] if most < len(shown) else shown


def _widths(width: int, columns: int) -> list[int]:
    """Return the width of each of *columns* columns, which fill *width* cells together with the gaps between them."""
    room = width - GAP * (columns - 1)
    return [(index + 1) * room // columns - index * room // columns for index in range(columns)]


def _beside(blocks: list[list[Line]], widths: list[int]) -> list[Line]:
    """Return the lines of *blocks* side by side, in columns of *widths* cells.

    The lines of a block must be as wide as its column. A block that is missing or shorter is filled with blanks.
    """
    if len(widths) == 1:
        return blocks[0]
    lines: list[Line] = []
    for parts in zip_longest(*blocks, *[[]] * (len(widths) - len(blocks)), fillvalue=[]):
        line: Line = []
        for index, (part, wide) in enumerate(zip(parts, widths, strict=True)):
            line += [Segment(" " * GAP)] * (index > 0) + (part or [Segment(" " * wide)])
        lines.append(line)
    return lines


def _columns(facts: list[tuple[str, ...]], room: int) -> list[str]:
    """Return one text for each device with its facts in aligned columns, in at most *room* cells.

    If there is no room for all facts, only the first and the last of each device stay, then the first, then none.
    """
    for chosen in (facts, [(row[0], row[-1]) for row in facts], [row[:1] for row in facts]):
        columns = list(zip_longest(*chosen, fillvalue=""))
        widths = [max(map(cell_len, column)) for column in columns]
        if sum(widths) + 2 * len(widths) <= room:
            rows = zip(*columns, strict=True)
            return ["".join(f" {_padded(fact, wide)} " for fact, wide in zip(row, widths, strict=True)) for row in rows]
    return [""] * len(facts)


def _padded(fact: str, width: int) -> str:
    """Return *fact* in *width* cells, with its figure at the right: ``util   5%``."""
    missing = " " * (width - cell_len(fact))
    word, space, figure = fact.partition(" ")
    return missing + fact if fact[:1].isdigit() else word + missing + space + figure


def _exactly(line: Line, width: int) -> Line:
    return line if width_of(line) == width else Segment.adjust_line_length(line, width)
