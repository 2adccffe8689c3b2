"""The app: folds the events of a source into the state, and draws the state.

Events are folded as they come; panels are redrawn at a pace of their own, so that a frame costs the
same however fast readings arrive. What a user waits for (a run that starts or ends, output, the
answer to a key) is drawn within a tenth of a second.
"""

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import ModalScreen
from textual.widget import Widget

from tfmemtop import events
from tfmemtop.options import Outcome, UiOptions
from tfmemtop.state import State, apply
from tfmemtop.state.pool_views import choose, living
from tfmemtop.state.views import process_count
from tfmemtop.ui.allocator_panel import AllocatorPanel
from tfmemtop.ui.device_panel import DevicesPanel
from tfmemtop.ui.driver import TerminalDriver, driver_class
from tfmemtop.ui.fitting import Fitting
from tfmemtop.ui.header import Header
from tfmemtop.ui.key_bar import KeyBar
from tfmemtop.ui.keys import KEYS, Key
from tfmemtop.ui.layout import AROUND, arrange, output_size
from tfmemtop.ui.map_screen import PACE_S, MapScreen
from tfmemtop.ui.map_wishes import MapWishes
from tfmemtop.ui.output_panel import OutputPanel
from tfmemtop.ui.pace import Pace
from tfmemtop.ui.palette import ASCII, UNICODE
from tfmemtop.ui.process_table import ProcessTable
from tfmemtop.ui.replay_bar import ReplayBar
from tfmemtop.ui.source import ReplaySource, Reset, Source
from tfmemtop.ui.steering import SIGNALLED, Steering
from tfmemtop.ui.sturdy import SturdyApp
from tfmemtop.ui.why_panel import WhyPanel

PACES_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)

_URGENT = (
    events.Session,
    events.Run,
    events.RunEnd,
    events.Stopping,
    events.Device,
    events.Hook,
    events.Effective,
    events.OutOfMemory,
    events.Waiting,
    events.Environment,
    events.Notice,
)

_PANEL_ACTIONS = frozenset(("map", "toggle_output", "toggle_allocators", "type", "filter", "span", "scale"))
"""Concern panels that a full screen hides."""

_REPLAY_ACTIONS = frozenset(key.action.partition("(")[0] for key in KEYS if key.replay)


class TfmemtopApp(SturdyApp):
    """The live screen, and with a :class:`ReplaySource` the same screen from a recording."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { layout: vertical; background: ansi_default; color: ansi_default; }
    #lower { layout: horizontal; }
    #allocators { margin-right: 1; }
    ModalScreen { background: transparent; }
    """
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, source: Source, options: UiOptions) -> None:
        super().__init__(driver_class(), ansi_color=True)
        self.animation_level = "none"
        self.source = source
        self.options = options
        self.state = State()
        self.glyphs = ASCII if options.ascii else UNICODE
        self.replay = source if isinstance(source, ReplaySource) else None
        self.readonly = options.readonly or not source.live
        self.steering = Steering(self)
        self.fitting = Fitting(self)
        if self.replay:
            self.replay.folded = lambda: self.state
        self.frozen = False
        self.engine_gone = False
        self._output_drawn = -1
        self.pace = Pace(
            draw=self._draw,
            draw_output=self._draw_output,
            has_new_output=lambda: not self.frozen and self.state.output_count != self._output_drawn,
            later=self.call_later,
        )
        self._shown = {"output": True, "allocators": True}
        self._arranged: tuple[object, ...] | None = (
            None  # what the user had chosen when the script's terminal was last fitted
        )
        self._output_size: tuple[int, int] | None = None
        self._map_wishes = MapWishes()
        self.header = Header(glyphs=self.glyphs)
        self.devices = DevicesPanel(glyphs=self.glyphs, color=options.color, id="devices")
        self.table = ProcessTable(glyphs=self.glyphs, id="processes")
        self.allocators = AllocatorPanel(glyphs=self.glyphs, id="allocators")
        self.output = OutputPanel(glyphs=self.glyphs, id="output")
        self.output.can_type = not self.readonly
        self.why = WhyPanel(glyphs=self.glyphs, id="why")
        self.lower = Container(self.allocators, self.output, id="lower")
        self.replay_bar = ReplayBar(self.replay, glyphs=self.glyphs) if self.replay else None
        self.key_bar = KeyBar(glyphs=self.glyphs)
        self.keys = [key for key in KEYS if self._has(key)]
        self.key_bar.keys = [key for key in self.keys if key.footer and not (key.refuses and self.readonly)]
        for key in self.keys:
            # In a replay its own keys come before a panel's: space plays, as in every player.
            self._bindings.bind(key.keys, key.action, key.help, show=False, priority=key.replay)

    def _has(self, key: Key) -> bool:
        return (not key.replay or self.replay is not None) and not (key.steers and self.readonly)

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
        self.run_worker(self._fold(), name="fold", exit_on_error=True)

    async def _fold(self) -> None:
        async for batch in self.source.batches():
            if isinstance(batch, Reset):
                self.state = batch.state
                self._output_drawn = -1
            else:
                self._take(batch)
            if self.replay:
                self.pace.urge()
            self.pace.look()
            await asyncio.sleep(0)  # keys first: what comes without pause would never let them through
        self.engine_gone = True
        self.pace.urge()
        self.pace.look()
        if self.source.live:
            self.fitting.engine_went()
            self.steering.engine_went()

    def _take(self, batch: list[events.AnyEvent]) -> None:
        for event in batch:
            apply(self.state, event)
            self.fitting.take(event)
            if isinstance(event, _URGENT):
                self.pace.urge()

    def _draw(self) -> None:
        if not self.frozen and self.state.session is not None:
            self.redraw()

    def redraw(self) -> None:
        """Lay out, and draw every panel that is shown from the newest state."""
        self.header.next_words = self.steering.next_words()
        self.header.marks = tuple(self._marks())
        covered = self._covered
        if not covered:
            self._draw_panels()
        self._try(self._draw_output)
        for screen in self.screen_stack[max(1, covered) :]:
            if refresh := getattr(screen, "refresh_state", None):
                self._try(partial(refresh, self.state))
        self.ask_for_maps()

    @property
    def _covered(self) -> int:
        """How many screens lie under a full one, such as the map's: of these nothing is seen."""
        full = (index for index, screen in enumerate(self.screen_stack) if not isinstance(screen, ModalScreen))
        return max(full, default=0)

    def _draw_panels(self) -> None:
        self._try(self._arrange)
        self._try(self._choose)
        for panel in (self.header, self.devices, self.table, self.allocators, self.why, self.key_bar):
            panel.show(self.state)
        if self.replay_bar:
            self.replay_bar.show(self.state)

    def _choose(self) -> None:
        selected = self.table.selected
        self.allocators.chosen = choose(self.state, selected.pid if selected else None)

    def ask_for_maps(self) -> None:
        """Have read what is looked at, and nothing else."""
        covered, chosen = self._covered, self.allocators.chosen
        screen = self.screen_stack[covered] if covered else None
        wish = screen.wish if isinstance(screen, MapScreen) else None
        shown = self.allocators.display and self.allocators.map_rows
        if screen is None and chosen and shown and living(self.state, chosen):
            wish = events.MapWanted(pid=chosen[0], device=chosen[1], pace_s=PACE_S)
        for command in self._map_wishes.change(wish):
            self.send(command)

    def _draw_output(self) -> None:
        self._output_drawn = self.state.output_count
        self.output.show(self.state)

    def _marks(self) -> Iterable[str]:
        if self.replay:
            yield "REPLAY"
        elif self.options.readonly:
            yield "READ-ONLY"
        if mark := self.fitting.mark:
            yield mark
        if self.frozen:
            yield "FROZEN: Z goes on"
        if self.engine_gone and self.source.live:
            yield "ENGINE GONE"

    def _arrange(self) -> None:
        width, height = self.size
        height -= AROUND + (1 if self.replay_bar else 0)
        has_run = self.state.run is not None
        heights = arrange(
            width,
            height,
            devices_wanted=lambda lines: self.devices.wanted_height(self.state, width, lines),
            processes=process_count(self.state),
            why_wanted=self.why.wanted_height(self.state, width),
            allocators=has_run and self._shown["allocators"],
            output=has_run and self._shown["output"],
        )
        lower = heights.allocators if heights.side_by_side else heights.allocators + heights.output
        _set_height(self.devices, heights.devices)
        _set_height(self.table, heights.processes)
        _set_height(self.lower, lower)
        _set_height(self.why, heights.why)
        direction = "horizontal" if heights.side_by_side else "vertical"
        if str(self.lower.styles.layout) != f"<{direction}>":
            self.lower.styles.layout = direction
        for panel, lines in ((self.allocators, heights.allocators), (self.output, heights.output)):
            _set_height(panel, lines)
        if heights.output and not self.readonly:
            self._tell_size(*output_size(width, heights))

    def _tell_size(self, columns: int, rows: int) -> None:
        """Give the script's terminal the size of its panel: where the user has arranged the screen anew.

        Else only if it no longer fits: not each process and finding that comes and goes is to resize it.
        A panel that is higher shows what has scrolled off above.
        """
        arranged = (self.size, *self._shown.values())
        anew = self._arranged not in (None, arranged)
        changed = (columns, rows) != self._output_size
        self._arranged, self._output_size = arranged, (columns, rows)
        told, run = self.state.terminal, self.state.run
        if told is None or anew:
            fits = False
        else:
            # Between two runs findings come that the next begins without.
            fits = columns == told.columns and (rows >= told.rows or run is None or not run.going)
        if changed and not fits:
            self.send(events.Resize(columns=columns, rows=rows))

    def on_resize(self) -> None:
        if self.state.session is not None:
            self.call_after_refresh(self.redraw)

    def send(self, command: events.AnyCommand) -> None:
        """Pass *command* to the engine, unless nothing may be changed."""
        if self.source.live and not self.engine_gone:
            self.run_worker(self.source.send(command), name="send", exit_on_error=False)

    @property
    def script_goes_on(self) -> bool:
        """Whether a script goes on if the screen ends now, as far as is known."""
        if not self.source.live or self.engine_gone:
            return False
        run, session = self.state.run, self.state.session
        return run.going if run else session is None or bool(session.command)

    def end_for(self, number: int) -> None:
        """A signal asks us to end: leave at once, without a question; the script goes on."""
        self.exit(Outcome(SIGNALLED + number, left_running=self.script_goes_on))

    def failed(self, text: str) -> None:
        """Show among the findings what could not be drawn."""
        apply(self.state, events.Notice(t=self.state.now, key="drawing", level="error", text=text))

    def give_terminal_back(self) -> None:
        """The last resort of a screen that does not end by itself."""
        if isinstance(self._driver, TerminalDriver):
            self._driver.give_back()

    # What keys and panels ask for.

    def action_help(self) -> None:
        self.steering.show_help()

    def action_runs(self) -> None:
        self.steering.show_runs()

    def action_fit(self) -> None:
        self.fitting.pressed()

    def action_why(self) -> None:
        self.steering.show_why()

    def action_growth(self) -> None:
        self.steering.cycle_growth()

    def action_allocator(self) -> None:
        self.steering.cycle_allocator()

    def action_limit(self) -> None:
        self.steering.ask_limit()

    def action_gpus(self) -> None:
        self.steering.ask_gpus()

    def action_arguments(self) -> None:
        self.steering.ask_arguments()

    def action_relaunch(self) -> None:
        self.steering.ask_relaunch()

    def action_leave(self) -> None:
        self.steering.ask_leave()

    async def action_quit(self) -> None:
        """Ctrl-Q, which Textual binds before all else: it must ask too, and is the script's while one types."""
        if self.output.typing:
            self.send(events.Input(text="\x11"))
        else:
            self.steering.ask_leave()

    def action_help_quit(self) -> None:
        """Ctrl-C, to which Textual gives a hint of its own."""
        self.steering.ask_leave()

    def action_type(self) -> None:
        self._shown["output"] = True
        self.redraw()
        self.output.focus()
        self.output.action_type()

    def action_map(self) -> None:
        selected = self.table.selected
        chosen = choose(self.state, selected.pid if selected else None)
        self.push_screen(MapScreen(self, chosen), lambda _: self.redraw())

    def action_toggle_output(self) -> None:
        self._toggle("output")

    def action_toggle_allocators(self) -> None:
        self._toggle("allocators")

    def _toggle(self, name: str) -> None:
        self._shown[name] = not self._shown[name]
        self.redraw()

    def action_span(self, step: int) -> None:
        self.devices.cycle_span(step)
        self.redraw()

    def action_scale(self) -> None:
        self.devices.toggle_scale()
        self.redraw()

    def action_freeze(self) -> None:
        self.frozen = not self.frozen
        if self.frozen:
            self.header.marks = tuple(self._marks())
            self.header.show(self.state)
        else:
            self.redraw()

    def action_pace(self, factor: float) -> None:
        step = -1 if factor < 1 else 1
        at = PACES_S.index(self.pace.every_s) + step
        self.pace.every_s = PACES_S[min(max(0, at), len(PACES_S) - 1)]
        self.pace.look()
        self.notify(f"redrawn every {self.pace.every_s:g} s", timeout=2)

    def action_filter(self) -> None:
        self.table.focus()
        self.table.action_filter()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The replay's keys come first, but not while text is being typed or a dialog is open."""
        if self.replay and action in _REPLAY_ACTIONS:
            return not self.table.typing and not isinstance(self.screen, ModalScreen)
        return not (action in _PANEL_ACTIONS and self._covered)

    def action_play(self) -> None:
        if self.replay:
            self.replay.toggle_pause()

    def action_step(self, direction: int) -> None:
        if self.replay:
            self.replay.step(direction)

    def action_seek(self, seconds: float) -> None:
        if self.replay:
            self.replay.seek_by(seconds)

    def action_speed(self, factor: float) -> None:
        if self.replay:
            (self.replay.faster if factor > 1 else self.replay.slower)()

    @on(KeyBar.Pressed)
    async def _key_clicked(self, message: KeyBar.Pressed) -> None:
        await self.run_action(message.action)

    @on(ProcessTable.Details)
    def _details(self, message: ProcessTable.Details) -> None:
        self.steering.show_details(message.pid)

    @on(ProcessTable.Signal)
    def _signal(self, message: ProcessTable.Signal) -> None:
        self.steering.ask_signal(message.pids)

    @on(OutputPanel.Typed)
    def _typed(self, message: OutputPanel.Typed) -> None:
        if not self.readonly:
            self.send(events.Input(text=message.text))


def _set_height(widget: Widget, lines: int) -> None:
    """Give *widget* that many lines, none hides it; touch its styles only if that changes them."""
    if widget.display != (lines > 0):
        widget.display = lines > 0
    height = widget.styles.height
    if lines > 0 and (height is None or height.value != lines or not height.is_cells):
        widget.styles.height = lines


__all__ = ["Binding", "TfmemtopApp"]
