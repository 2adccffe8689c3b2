"""The app: reads the events of a source, which are folded into the state, and lets the screens draw the state.

The actions of most keys are in the mixins beside this file (``…_actions.py``): one file a subject.

Events are folded as they arrive. Screens are drawn at their own pace, so that the cost of drawing does not
depend on how fast readings arrive. What a user waits for (a run that starts or ends, output, the
answer to a key) is drawn within a tenth of a second.
"""

import asyncio
import math
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen, Screen
from textual.timer import Timer

from tfmemtop import boot
from tfmemtop.charset import to_ascii
from tfmemtop.events import CaughtUp, Event, MapWanted, OutOfMemory, RunEnd
from tfmemtop.experiments.session import Batch, Source
from tfmemtop.experiments.session.session import Session
from tfmemtop.findings import holders as words
from tfmemtop.findings.rules.ending import ending
from tfmemtop.safe import safe
from tfmemtop.state import State
from tfmemtop.state.model import RunState
from tfmemtop.ui import ScreenOutcome, UiOptions
from tfmemtop.ui.keys import KEYS, WATCHING, Key
from tfmemtop.ui.next_run_actions import NextRunActions
from tfmemtop.ui.process_actions import ProcessActions
from tfmemtop.ui.screen_app import TerminalDriver
from tfmemtop.ui.screens import Changed, Drawn, PoolWanted
from tfmemtop.ui.screens.main_screen import Choices, MainScreen
from tfmemtop.units import format_bytes, format_duration

if TYPE_CHECKING:
    from tfmemtop.ui.screens.full_screen import CoveringPanel


PACES_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""The times between two frames that the user can choose from, in seconds."""

LEAST_S = 0.1
"""The shortest time between two frames, in seconds."""


class News:
    """Tells of the runs that ended by themselves, and of the first out-of-memory error of each run; each once."""

    def __init__(self) -> None:
        self._ran_out_in: int | None = None
        self._present = False

    def of(self, batch: Iterable[Event], state: State) -> Iterator[str]:
        """Return the alerts for the news in *batch*: out-of-memory errors, and runs that have ended.

        *state* contains the events of *batch* already. A run that was ended from a screen is not news, and nothing
        that happened before this screen was attached is.
        """
        run = state.run
        for event in batch:
            if isinstance(event, CaughtUp):
                self._present = True
            elif run is None or not self._present:
                continue
            elif isinstance(event, OutOfMemory) and self._ran_out_in != run.run:
                self._ran_out_in = run.run
                yield ran_out(event)
            elif isinstance(event, RunEnd) and event.run == run.run and run.stopping is None:
                yield ended(run)


def ended(run: RunState) -> str:
    """Return the alert for the end of a run: ``run 2 ended with exit code 1 after 00:12:03``."""
    return f"run {run.run} {ending(run.ending)} after {format_duration((run.ended or run.started) - run.started)}"


def ran_out(error: OutOfMemory) -> str:
    """Return the alert for a failed allocation: ``out of memory on GPU:0: AddV2 asked for 1.0 MiB``.

    What is not known is left out.
    """
    where = f" on {error.device}" if error.device else ""
    if error.requested is None:
        return f"out of memory{where}"
    return f"out of memory{where}: {error.operation or 'TensorFlow'} asked for {format_bytes(error.requested)}"


def _bound(key: Key) -> str:
    """Return the action of *key*; if it changes the script, within ``steer``, which checks that this is allowed."""
    return f"steer({key.action!r})" if key.steers else key.action


# A screen or dialog that a key opens is imported by the method that opens it: the first frame does not need it.


class TfmemtopApp(ProcessActions, NextRunActions):
    """Connects the session with the screens: draws the state that events change, and carries out the keys' actions."""

    # The keys of a replay have priority over those of a panel: the space bar plays, as in every player.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key.keys, _bound(key), show=False, priority=key.replay) for key in KEYS
    ]

    def __init__(self, source: Source, options: UiOptions, choices: Choices | None = None) -> None:
        """Prepare the app. *choices* are the user's choices on the previous screen; without them, the defaults hold."""
        super().__init__(options)
        self.session = Session(source, readonly=options.readonly, outside=options.outside)
        self.keys = [key for key in KEYS if self._has(key)]
        self.main = MainScreen(self.session, self._offered, choices or Choices(), braille=self.braille)
        self.every_s = 1.0
        self._urgent = False  # whether the user waits for the next frame
        self._drawn_at = self._output_drawn_at = -math.inf  # on the monotonic clock
        self._soon: Timer | None = None
        self._map: MapWanted | None = None  # what the engine was last asked to read
        self._output_drawn = -1
        self._successor, self._recording, self._hint = options.successor, options.recording, options.hint
        self._news = News() if options.notify and source.live else None

    def _has(self, key: Key) -> bool:
        """Return whether *key* has an effect in this session."""
        return (not key.replay or self.session.replay is not None) and (not key.steers or self.session.may_change)

    def _offered(self) -> list[Key]:
        """Return the keys for the last line: those that have an effect now. A replay's keys have their own bar."""
        state = self.session.state
        if state.session is None:
            return []
        has_run = state.run is not None or not self.session.watches_only
        on_gpus = bool(state.devices)
        footer = [
            key for key in KEYS if key.footer and not key.replay and self._has(key) and (on_gpus or not key.of_gpus)
        ]
        if has_run:
            return footer
        first, *others = (key for key in footer if not key.of_run)
        return [first, *filter(self._has, WATCHING), *others]

    @property
    def choices(self) -> Choices:
        """The user's choices on this screen. The next screen begins with them."""
        return self.main.chosen()

    def get_default_screen(self) -> Screen[None]:
        return self.main

    def on_mount(self) -> None:
        self.run_worker(self._follow(), name="follow", exit_on_error=True)
        if self._successor is not None:
            self.follow_restarts(self._successor)
        if self._hint:
            self.notify(self._hint, timeout=15)

    # Events, and when they are drawn.

    @property
    def state(self) -> State:
        return self.session.state

    @property
    def script_goes_on(self) -> bool:
        return self.session.script_goes_on

    async def _follow(self) -> None:
        async for batch in self.session.batches():
            if self.session.replay or any(event.urgent for event in batch):
                self._urgent = True
            self._tell_news(batch)
            self.follow_search()
            self._draw_due()
            await asyncio.sleep(0)  # lets keys be handled: events that arrive without a pause would block them
        self.follow_search()
        self._urgent = True
        self._draw_due()
        if self.session.leaving:
            self.exit(ScreenOutcome(self.session.exit_code))

    def _tell_news(self, batch: Batch) -> None:
        """Ring the terminal's bell and notify the user, if *batch* contains news."""
        told = list(self._news.of(batch, self.state)) if self._news else []
        if told and isinstance(self._driver, TerminalDriver):
            text = safe("; ".join(told))
            self._driver.alert("tfmemtop", to_ascii(text) if self.ascii_only else text)

    def _draw_due(self) -> None:
        """Draw the newest state, or only the newest output, if that is due; if it is due soon, draw it then.

        Frames come with readings, which arrive anyway: to wake up for both would cost twice as much.
        """
        now = time.monotonic()
        if self._soon is not None:
            self._soon.stop()
        if now - self._drawn_at >= (LEAST_S if self._urgent else self.every_s):
            self._urgent = False
            self._drawn_at = self._output_drawn_at = now
            if not self.session.frozen and self.state.session is not None:
                self.redraw()
        elif now - self._output_drawn_at >= LEAST_S and self._has_new_output():
            self._output_drawn_at = now
            self._draw_output()
        elif self._urgent or self._has_new_output():
            self._soon = self.set_timer(LEAST_S, self._draw_due)

    def _has_new_output(self) -> bool:
        return not self.session.frozen and self.state.output_count != self._output_drawn

    def _draw_output(self) -> None:
        self._output_drawn = self.state.output_count
        self.main.draw_output()

    def redraw(self) -> None:
        """Draw the newest state on every visible screen, and let the engine read the map that is shown."""
        seen = self._seen()
        for screen in seen:
            self._try(partial(screen.refresh_state, self.state))
        self._try(self._draw_output)
        self._request_map(seen[0].wish if seen else None)  # while the app ends, it has no screen

    def _request_map(self, wish: MapWanted | None) -> None:
        """Let the engine read the map *wish*, and no other: only one that the user looks at."""
        before, self._map = self._map, wish
        if before is not None and (wish is None or (wish.pid, wish.device) != (before.pid, before.device)):
            self.session.send(MapWanted(pid=before.pid, device=before.device, pace_s=None))
        if wish is not None and wish != before:
            self.session.send(wish)

    def _seen(self) -> list[Drawn]:
        """Return the visible screens: the topmost one that is not a dialog, and the dialogs above it."""
        stack = self.screen_stack
        covering = max((at for at, screen in enumerate(stack) if not isinstance(screen, ModalScreen)), default=0)
        return [screen for screen in stack[covering:] if isinstance(screen, Drawn)]

    def on_resize(self) -> None:
        if self.state.session is not None:
            self.call_after_refresh(self.redraw)

    @on(Changed)
    def _changed(self) -> None:
        self.redraw()

    async def action_steer(self, action: str) -> None:
        """Run *action*, which changes the script, or notify the user why nothing can be changed here."""
        if self.session.may_change:
            await self.run_action(action)
        else:
            self.notify(self.session.why_unchangeable)

    # Other screens.

    def action_help(self) -> None:
        from tfmemtop.ui.screens.help import HelpDialog

        self.push_screen(HelpDialog())

    def action_runs(self) -> None:
        from tfmemtop.ui.panels.runs_panel import RunsPanel

        self._cover(RunsPanel(self.session, braille=self.braille))
        if self._recording is not None:
            self.find_earlier(self._recording)

    def action_why(self) -> None:
        from tfmemtop.ui.screens.why_screen import WhyScreen

        may_change = self.session.may_change
        self.push_screen(WhyScreen(lambda: self.state, steers=may_change), self._remedy)

    def _remedy(self, pressed: str | None) -> None:
        """Run the action of a remedy's key, *pressed* on the screen of findings, as on the main screen."""
        for key in self.keys:
            if key.shown == pressed:
                self.run_worker(self.run_action(key.action), name="remedy")

    def action_whatif(self) -> None:
        from tfmemtop.ui.panels.whatif_panel import WhatIfPanel

        self._cover(WhatIfPanel(self.session))

    def on_pool_wanted(self, message: PoolWanted) -> None:
        """Show the map or the holders of a pool, in place of an open screen about a pool: one key then leads back."""
        from tfmemtop.ui.panels.holders_panel import HoldersPanel
        from tfmemtop.ui.panels.map_panel import MapPanel
        from tfmemtop.ui.screens.full_screen import FullScreen

        if isinstance(self.screen, FullScreen):
            self.pop_screen()
        if message.holders:
            panel = HoldersPanel(self.session, message.key, braille=self.braille)
            then = message.column is None or panel.choice.to_column(*message.column)
            self._cover(panel)
            if not then and panel.choice.window:
                self.notify(words.NOT_RECORDED_THEN)
        else:
            self._cover(MapPanel(self.session, message.key))

    def _cover(self, panel: "CoveringPanel") -> None:
        """Show *panel* on a screen of its own."""
        from tfmemtop.ui.screens.full_screen import FullScreen

        self.push_screen(FullScreen(panel), lambda _: self.redraw())

    # A replay.

    def action_replay(self, method: str, *arguments: float) -> None:
        """Call *method* of the replay, if this is one."""
        if self.session.replay:
            getattr(self.session.replay, method)(*arguments)

    # The screen itself.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether the app handles the key of *action*.

        The panels keep a key that has no effect in this session, and a replay's keys while the user types or a
        dialog is open; the graphs, while a moment is chosen on them, keep those that seek.
        """
        key = _BY_ACTION.get(action)
        if key is None:
            return True
        seeks = parameters[:1] in (("seek",), ("seek_by",))
        choosing = self.main.devices.has_focus and not (seeks and self.screen is self.main)
        typing = bool(self.main.mode) and not choosing
        return self._has(key) and not (key.replay and (typing or isinstance(self.screen, ModalScreen)))

    def action_freeze(self) -> None:
        self.session.toggle_frozen()
        if self.session.frozen:
            self.main.header.show(self.state)
        else:
            self.redraw()

    def action_page(self) -> None:
        """Have the page to share written from the session's recording, or notify the user that there is none."""
        session, replay = self.state.session, self.session.replay
        path = replay.recording.path if replay else self._recording(session.id) if self._recording and session else None
        if path is None:
            self.notify("A page is written from a recording, and this session has none.")
        else:
            self.run_worker(self._write_page(path), group="page", exclusive=True)

    async def _write_page(self, recording: Path) -> None:
        """Notify the user where the page is, or why there is none. It is made in a process of its own."""
        nothing, pipe = asyncio.subprocess.DEVNULL, asyncio.subprocess.PIPE
        command = boot.command(boot.SCREENS, "report", str(recording))
        try:
            writer = await asyncio.create_subprocess_exec(*command, stdin=nothing, stdout=pipe, stderr=pipe)
        except OSError as error:
            self.notify(f"The page cannot be written: {error.strerror or error}.")
            return
        try:
            written, complaint = await writer.communicate()
        finally:
            if writer.returncode is None:
                writer.kill()
        self.notify((written or complaint).decode(errors="replace").strip())

    def action_pace(self, step: int) -> None:
        at = PACES_S.index(self.every_s) + step
        self.every_s = PACES_S[min(max(0, at), len(PACES_S) - 1)]
        self._draw_due()
        self.notify(f"redrawn every {self.every_s:g} s", timeout=2)


_BY_ACTION = {key.action.partition("(")[0]: key for key in KEYS}
