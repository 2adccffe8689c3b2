"""The panel of the devices: who holds the memory of each GPU, or of TensorFlow's CPU pool.

With enough room each device has a title, a bar, a legend and a graph. With less room, the graphs shrink first. Then
the devices stand side by side, if the screen is wide. Then the graphs are left out, then one legend serves all
devices. With little room each device is a single line, and with even less these lines scroll.
"""

from itertools import pairwise, zip_longest

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual import events

from tfmemtop.reports.devices import activity, note, title
from tfmemtop.safe import safe
from tfmemtop.state import State
from tfmemtop.state.views import DevicePanel, host_panel, panels
from tfmemtop.state.waiting import waiting
from tfmemtop.ui import waiting as waiting_words
from tfmemtop.ui.draw.bar import bar, legend, note_line, shared_legend, short_usage, usage
from tfmemtop.ui.draw.graph import Graph, Mark
from tfmemtop.ui.draw.layout import GAP, GRAPH_LEAST, WORDS_MOST, DeviceLayout, device_layout, devices_wanted
from tfmemtop.ui.draw.lines import Line, Panel, fit, width_of
from tfmemtop.ui.draw.palette import BOLD, DIM, PLAIN, UNICODE, Glyphs
from tfmemtop.ui.draw.scale import ScaleChoice
from tfmemtop.ui.draw.text import wrap
from tfmemtop.ui.draw.window import FIRST, SPANS, newest, whole, young

_BAR_LEAST, _BAR_LIKED = 4, 16  # cells
_SEPARATOR = " · "


class DevicesPanel(Panel):
    """The panel of all devices."""

    def __init__(
        self,
        *,
        glyphs: Glyphs = UNICODE,
        color: bool = True,
        steers: bool = False,
        scale: ScaleChoice = ScaleChoice.AUTO,
    ) -> None:
        """*steers*: whether the keys for the next run have an effect. *scale* is the graphs' first scale."""
        super().__init__(glyphs=glyphs)
        self._span: int | None = None
        self._whole_going = False
        self._scrolls_after: int | None = None  # the ended run of which the user wants to see only the newest time
        self.scale = scale
        self._color = color
        self._steers = steers
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
        layout, columns = device_layout(len(shown), width, height)
        if not shown:
            lines = [_exactly(line, width) for line in self._without_gpu(self.state, width, height)]
        elif layout is DeviceLayout.LINE:
            lines = self._a_line_each(shown, width, height)
        else:
            lines = self._stacked(shown, layout, columns, width, height)
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
        drawn = [Segment(" "), *bar(panel, width - room - 3, self.glyphs), Segment(f" {usage(panel)} ", BOLD)]
        return [drawn, *legend(panel, width, 1, self.glyphs)]

    def _stacked(
        self, shown: list[DevicePanel], layout: DeviceLayout, columns: int, width: int, height: int
    ) -> list[Line]:
        room = max(cell_len(usage(panel)) for panel in shown)
        widths = _widths(width, columns)
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
            lines.append(_exactly(shared_legend(self.glyphs, width), width))
        return lines

    def _device(self, panel: DevicePanel, layout: DeviceLayout, room: int, width: int, height: int) -> list[Line]:
        """Return the lines of one device, at most *height*. *room* is the width of the longest usage of all devices."""
        head = [self.title_line(width, title(panel), _SEPARATOR.join(activity(panel)))]
        if width >= room + _BAR_LEAST:
            drawn = bar(panel, width - room - 3, self.glyphs)
            head.append([Segment(" "), *drawn, Segment(f" {usage(panel):>{room}} ", BOLD)])
        else:
            head.append(bar(panel, width, self.glyphs))
        if layout is DeviceLayout.GRAPH:
            head += self._words(panel, width, min(WORDS_MOST, height - 2 - GRAPH_LEAST))
        elif layout is DeviceLayout.LEGEND:
            head += self._words(panel, width, 1)
        lines = [_exactly(line, width) for line in head]
        return lines + self._graph(panel, width, height - len(head)) if layout is DeviceLayout.GRAPH else lines

    def _words(self, panel: DevicePanel, width: int, rows: int) -> list[Line]:
        """Return legend and note in at most *rows* lines. With one line, there is a note only if there is no legend."""
        lacking = [note_line(panel, width, self.glyphs)] if note(panel) and (rows > 1 or not panel.layers) else []
        return (legend(panel, width, rows - len(lacking), self.glyphs) if panel.layers else []) + lacking

    def _graph(self, panel: DevicePanel, width: int, height: int) -> list[Line]:
        graph = self._graphs.get(panel.key)
        if graph is None:
            graph = self._graphs[panel.key] = Graph(self.glyphs, braille=self._color)
        began = [Mark(run.started, f"run {run.run}") for run in self.state.runs]
        now = self.state.now
        pauses = tuple((run.ended, after.started) for run, after in pairwise(self.state.runs) if run.ended is not None)
        window = newest(self.span, now, pauses)
        if self.whole and panel.whole:
            window = whole(panel.whole, now)
        elif self._span is None and (began_now := young(now, pauses)).span_s <= window.span_s:
            window = began_now
        # One column stays free on either side, as beside the bar.
        drawn = graph.build(panel, window, began, self.scale, width - 2, height)
        return [[Segment(" "), *line, Segment(" ")] for line in drawn]

    def _a_line_each(self, shown: list[DevicePanel], width: int, height: int) -> list[Line]:
        titled = height > 1
        rows = min(len(shown), height - titled)
        self._offset = min(self._offset, len(shown) - rows)
        above, below = self._offset, len(shown) - rows - self._offset
        hidden = [f"{self.glyphs.up} {above} more"] * (above > 0) + [f"{self.glyphs.more} {below} more"] * (below > 0)
        lines = [self.title_line(width, "GPUs", "  ".join(hidden))] if titled else []
        names = [safe(title(panel).replace("NVIDIA ", "")) for panel in shown]
        name_room = min(max(map(cell_len, names)), max(5, width // 4))
        usages = [short_usage(panel) for panel in shown]
        usage_room = max(map(cell_len, usages))
        free = width - name_room - usage_room - 4
        facts = _columns([activity(panel) or (note(panel),) for panel in shown], free - _BAR_LIKED)
        for index in range(above, above + rows):
            panel = shown[index]
            name = set_cell_size(fit(names[index], name_room, self.glyphs), name_room)
            room = free - cell_len(facts[index])
            line = [Segment(f" {name} ", PLAIN)]
            line += bar(panel, room, self.glyphs) if room >= _BAR_LEAST else [Segment(" " * max(0, room))]
            lines.append([*line, Segment(f" {usages[index]:>{usage_room}} ", BOLD), Segment(facts[index], DIM)])
        if height >= len(lines) + 1:
            lines.append(shared_legend(self.glyphs, width))
        return [_exactly(line, width) for line in lines]


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
