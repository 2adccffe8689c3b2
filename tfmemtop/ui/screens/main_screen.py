"""The main screen: its panels, how they share the room, the keys that change what they show, the user's choices."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from textual import on
from textual.app import ComposeResult
from textual.containers import Container
from textual.screen import Screen

from tfmemtop import events
from tfmemtop.experiments.session.session import Session
from tfmemtop.state import State
from tfmemtop.state.pool_views import PoolKey, can_be_read, choose
from tfmemtop.state.process_rows import processes
from tfmemtop.state.views import panels
from tfmemtop.ui.draw.columns import Order, fitting
from tfmemtop.ui.draw.layout import AROUND, Heights, arrange, output_size, without_empty
from tfmemtop.ui.draw.scale import ScaleChoice
from tfmemtop.ui.keys import Hints, Key, KeyBar
from tfmemtop.ui.panels.allocator_panel import AllocatorPanel
from tfmemtop.ui.panels.device_panel import DevicesPanel
from tfmemtop.ui.panels.header import Header, ReplayBar
from tfmemtop.ui.panels.output_panel import OutputPanel
from tfmemtop.ui.panels.process_rows import COLUMNS, process_order
from tfmemtop.ui.panels.process_table import ProcessTable
from tfmemtop.ui.panels.why_panel import WhyPanel
from tfmemtop.ui.screens import MAP_PACE_S, Changed, Drawn, PoolWanted

_LARGEST = 4096  # bytes


class Choices(msgspec.Struct, frozen=True):
    """Which panels are shown; ``sort``, the name of the column to sort by.

    ``steps``: whether the graphs have a line of the steps' time.
    """

    output: bool = True
    allocators: bool = True
    scale: ScaleChoice = ScaleChoice.AUTO
    sort: Annotated[str, msgspec.Meta(max_length=20)] = "GPU"
    inverted: bool = False
    steps: bool = False


def load_choices(path: Path | None) -> Choices:
    """Return the choices saved at *path*; the defaults, if *path* is ``None`` or cannot be read."""
    if path is None:
        return Choices()
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(_LARGEST), type=Choices)
    except (OSError, msgspec.DecodeError):
        return Choices()


def save_choices(choices: Choices, path: Path) -> None:
    """Save *choices* at *path*, completely or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    new = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        new.write_bytes(msgspec.json.encode(choices))
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


class MainScreen(Drawn, Screen[None]):
    """The main screen. It lays the panels out and draws them. The app handles the keys of the whole app."""

    DEFAULT_CSS = """
    MainScreen Container { layout: horizontal; }
    MainScreen AllocatorPanel { margin-right: 1; }
    """

    def __init__(
        self,
        session: Session,
        keys: Callable[[], Sequence[Key]],
        choices: Choices,
        *,
        braille: bool = True,
    ) -> None:
        """*keys* returns the keys of the last line. *choices* are the user's. A scale or column of them that no longer
        exists is ignored. *braille*: areas are made of dots.
        """
        super().__init__()
        self.session = session
        self._shown = {"output": choices.output, "allocators": choices.allocators}
        self._terminal_size = TerminalSize()
        self.header = Header(session)
        self.devices = DevicesPanel(
            steers=session.may_change, scale=choices.scale, steps=choices.steps, braille=braille
        )
        self.table = ProcessTable(_order(choices))
        self.allocators = AllocatorPanel(self._pool, braille=braille)
        self.output = OutputPanel(can_type=session.may_change)
        self.why = WhyPanel(steers=session.may_change)
        self.lower = Container(self.allocators, self.output)
        self.replay_bar = ReplayBar(session.replay) if session.replay else None
        self._keys = keys
        self.key_bar = KeyBar(self.hints)

    def chosen(self) -> Choices:
        """Return the user's present choices, of those that can be saved."""
        order = self.table.order
        scale, steps = self.devices.scale, self.devices.steps
        return Choices(scale=scale, steps=steps, sort=order.column, inverted=order.inverted, **self._shown)

    def compose(self) -> ComposeResult:
        yield self.header
        yield self.devices
        yield self.table
        yield self.lower
        yield self.why
        if self.replay_bar:
            yield self.replay_bar
        yield self.key_bar

    def on_mount(self) -> None:
        self.table.focus()
        if self.session.state.session is not None:
            self.refresh_state(self.session.state)  # lay it out now, so that nothing moves after the first frame

    # What is shown.

    def refresh_state(self, state: State) -> None:
        try:
            self._arrange(state)
        finally:  # if the layout fails, the panels are drawn where they are
            for panel in (self.header, self.devices, self.table, self.allocators, self.why, self.key_bar):
                panel.show(state)
            if self.replay_bar:
                self.replay_bar.show(state)

    @property
    def mode(self) -> Hints:
        """The keys of the output or the table while the user types there, or of the graphs while they are chosen."""
        return self.output.mode or self.table.mode or self.devices.mode

    def hints(self) -> Hints:
        """The keys of the last line. On a narrow screen the least important are left out."""
        room = self.app.size.width + 1
        keys = fitting(self._keys(), room, lambda key: len(key.shown) + len(key.footer) + 3, lambda key: -key.rank, 0)
        return self.mode or [(key.shown, key.footer) for key in keys]

    def draw_output(self) -> None:
        """Draw the script's newest output and nothing else, even while another screen covers this one."""
        self.output.show(self.session.state)

    @property
    def wish(self) -> events.MapWanted | None:
        pool = self._pool()
        if pool and self.allocators.display and self.allocators.map_rows and can_be_read(self.session.state, pool):
            return events.MapWanted(pid=pool[0], device=pool[1], pace_s=MAP_PACE_S)
        return None

    def _pool(self) -> PoolKey | None:
        """Return the pool whose map is shown: one of the process under the cursor, else the first."""
        selected = self.table.selected
        return choose(self.session.state, selected.pid if selected else None)

    def _arrange(self, state: State) -> None:
        width, height = self.app.size
        has_run = state.run is not None

        def devices_wanted(lines: int) -> int:
            return self.devices.wanted_height(state, width, lines)

        rows = len(processes(state))
        heights = arrange(
            width,
            height - AROUND - (1 if self.replay_bar else 0),
            devices_wanted=devices_wanted,
            devices=len(panels(state)),
            processes=rows,
            why_wanted=self.why.wanted_height(state, width),
            allocators=has_run and self._shown["allocators"],
            output=has_run and self._shown["output"] and not self.session.output_elsewhere,
        )
        if heights.output and self.session.may_change:
            arranged = (self.app.size, *self._shown.values())
            size = self._terminal_size.told(state, output_size(width, heights), arranged)
            if size:
                self.session.send(events.Resize(columns=size[0], rows=size[1]))
        self._give_room(
            without_empty(
                heights,
                allocators=self.allocators.wanted_height(state, output_size(width, heights)[0]),
                output=self.output.has_focus or state.output_count > 0,
                processes=rows,
                devices_wanted=devices_wanted,
            )
        )

    def _give_room(self, heights: Heights) -> None:
        lower = heights.allocators if heights.side_by_side else heights.allocators + heights.output
        for widget, lines in (
            (self.devices, heights.devices),
            (self.table, heights.processes),
            (self.lower, lower),
            (self.why, heights.why),
            (self.allocators, heights.allocators),
            (self.output, heights.output),
        ):
            widget.display = lines > 0
            if lines:
                widget.styles.height = lines
        direction = "horizontal" if heights.side_by_side else "vertical"
        if str(self.lower.styles.layout) != f"<{direction}>":
            self.lower.styles.layout = direction

    @on(OutputPanel.Typed)
    def _typed(self, message: OutputPanel.Typed) -> None:
        if self.session.may_change:
            self.session.send(events.Input(text=message.text))

    # What keys do.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether *action* is allowed: typing to the script is not, if nothing may be changed."""
        return action != "type" or self.session.may_change

    def action_type(self) -> None:
        self._shown["output"] = True
        self.refresh_state(self.session.state)
        self.output.focus()
        self.output.action_type()

    def action_map(self) -> None:
        self.post_message(PoolWanted(self._pool(), holders=False))

    def action_holders(self) -> None:
        self.post_message(PoolWanted(self._pool(), holders=True))

    def action_toggle_panel(self, name: str) -> None:
        """Show or hide the panel *name*, ``output`` or ``allocators``."""
        self._shown[name] = not self._shown[name]
        self.post_message(Changed())

    def action_part(self, name: str, method: str, *arguments: int) -> None:
        """Call *method* of the panel *name*."""
        getattr(getattr(self, name), method)(*arguments)

    def action_choose_moment(self) -> None:
        if self.devices.focusable:
            self.devices.focus()
        else:
            self.notify("No graph is shown here.")

    def action_leave_graph(self) -> None:
        self.table.focus()

    def action_holders_then(self) -> None:
        """Show the holders of the moment that is chosen on the graphs; if it is now, those of the peak."""
        moment = self.devices.moment
        column = None if moment.t is None else moment.column
        self.post_message(PoolWanted(self._pool(), holders=True, column=column))


def _order(choices: Choices) -> Order:
    known = choices.sort in [column.name for column in COLUMNS]
    return process_order(choices.sort, choices.inverted) if known else process_order()


class TerminalSize:
    """Decides when the script's terminal gets the size of its panel.

    It does so if the size has changed, and either the user has rearranged the screen or the terminal no longer fits
    the panel. Processes and findings that come and go must not resize the terminal otherwise: a panel that is higher
    than the terminal shows earlier lines.
    """

    def __init__(self) -> None:
        self._arranged: tuple[object, ...] | None = None  # what the user had chosen at the last call
        self._size: tuple[int, int] | None = None

    def told(self, state: State, size: tuple[int, int], arranged: tuple[object, ...]) -> tuple[int, int] | None:
        """Return *size*, columns and rows of the panel, if the script's terminal must get it; else ``None``.

        *arranged* is what the user has chosen: the size of the user's own terminal, and which panels are shown.
        """
        anew = self._arranged not in (None, arranged)
        changed = size != self._size
        self._arranged, self._size = arranged, size
        return size if changed and (anew or not _fits(state, size)) else None


def _fits(state: State, size: tuple[int, int]) -> bool:
    terminal, run = state.terminal, state.run
    if terminal is None:
        return False
    columns, rows = size
    # After a run, findings may make the panel lower. The next run begins without them, so that is no reason to resize.
    return columns == terminal.columns and (rows >= terminal.rows or run is None or not run.going)
