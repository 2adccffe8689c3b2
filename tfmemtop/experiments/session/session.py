"""A session as a screen works on it: the state, the next run, and the commands for the engine."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from tfmemtop import events
from tfmemtop.events import Command, Event
from tfmemtop.experiments.session import Batch, Source
from tfmemtop.experiments.session.next_run import NextRun
from tfmemtop.experiments.session.replay import ReplaySource
from tfmemtop.findings.rules.attached import READ_ONLY
from tfmemtop.limits import SuggestedLimit
from tfmemtop.state import State
from tfmemtop.state.model import RunState

if TYPE_CHECKING:
    from tfmemtop.experiments.fit.session import SessionFit  # not needed before the user starts a search


class Fitting:
    """Passes the session's events to a search, and sends the search's commands to the engine.

    Each try of a search changes the settings of the next run. When the search is over, the next run is again as the
    user had chosen it.
    """

    def __init__(self, *, send: Callable[[Command], None], choose: Callable[[NextRun], None]) -> None:
        self._send = send
        self._choose = choose
        self.search: SessionFit | None = None
        """The search that is running, else the newest one that has ended; ``None`` before the first."""
        self._before: NextRun | None = None  # the next run as it was before the search

    @property
    def going(self) -> bool:
        """Whether tries are being made."""
        return self.search is not None and self.search.going

    def suggested(self, upcoming: NextRun) -> SuggestedLimit | None:
        """Return the limit that the newest search has found; ``None`` if it found none or was for another command.

        *upcoming* is the next run, whose command and growth are used.
        """
        if self.search is None or tuple(self.search.plan.command) != upcoming.argv:
            return None
        found = self.search.plan.suggested(self.search.search)
        return found.under(upcoming.settings.growth) if found else None

    def begin(self, search: "SessionFit", upcoming: NextRun, newest_run: int) -> None:
        """Start *search*. *upcoming* is the next run as the user has it now, *newest_run* the last run's number."""
        self._before = upcoming
        self.search = search
        self.go_on(newest_run)

    def go_on(self, newest_run: int) -> None:
        """Start the next try of a search that is new or has been stopped. *newest_run* is the last run's number."""
        if self.search is not None:
            self._carry_out(self.search.begin(newest_run))

    def stop(self, *why: str) -> None:
        """End the search, because of *why* if it was not the user. The run of its current try goes on."""
        if self.search is not None and self.search.going:
            self.search.stop(*why)
            self._carry_out([])

    def take(self, event: Event) -> None:
        """Pass *event*, the session's next one, to the search."""
        if self.search is not None and self.search.going:
            self._carry_out(self.search.take(event))

    def _carry_out(self, commands: list[Command]) -> None:
        for command in commands:
            self._send(command)
        if not self.going and self._before is not None:
            self._choose(self._before)


class Session:
    """What every screen and panel receives that needs more than the state.

    ``readonly`` is true if the user asked for a screen that changes nothing. *outside* is true if the session was
    begun for a process that tfmemtop did not start.
    """

    def __init__(self, source: Source, *, readonly: bool = False, outside: bool = False) -> None:
        self.source = source
        self._outside = outside
        self.readonly = readonly
        self.replay = source if isinstance(source, ReplaySource) else None
        self.frozen = False
        """Whether the screen stays as it is while events arrive."""
        self.engine_gone = False
        self.leaving = False
        """Whether the engine has been asked to end."""
        self.fitting = Fitting(send=self.send, choose=self.choose)
        self.earlier: dict[str, RunState] = {}
        """If the newest run is a Jupyter kernel: the runs of its earlier starts that have been read, by session."""
        self._chosen: NextRun | None = None
        self._sending: set[asyncio.Task[None]] = set()

    @property
    def state(self) -> State:
        """The fold of all events so far."""
        return self.source.state

    async def batches(self) -> AsyncIterator[Batch]:
        """Return events as they arrive. The state contains them already."""
        async for batch in self.source.batches():
            if self.fitting.going:
                for event in batch:
                    self.fitting.take(event)
            yield batch
        self.engine_gone = self.source.live
        self.fitting.stop("the engine has ended")

    def toggle_frozen(self) -> None:
        """Let the screen stay as it is, or follow the events again."""
        self.frozen = not self.frozen

    # What is allowed.

    @property
    def connected(self) -> bool:
        """Whether commands reach an engine."""
        return self.source.live and not self.engine_gone

    @property
    def may_change(self) -> bool:
        """Whether the user may change anything.

        This is false in a replay, on a read-only screen, and for a process that tfmemtop did not start.
        """
        return self.source.live and not self.readonly and not self.outside

    @property
    def why_unchangeable(self) -> str:
        """Why a key cannot change the script or a process, where :attr:`may_change` is false."""
        if self.replay is not None:
            return "This is a recording: nothing in it can be changed."
        if self.outside:
            return READ_ONLY
        return "This screen is read-only: no key changes the script or a process."

    @property
    def watches_only(self) -> bool:
        """Whether tfmemtop started no script in this session, so that processes of others can be read."""
        run, session = self.state.run, self.state.session
        return self.connected and (run.outside if run else session is not None and not session.command)

    @property
    def outside(self) -> bool:
        """Whether the newest run is a process that tfmemtop did not start and only reads."""
        run = self.state.run
        return self._outside if run is None else run.outside

    @property
    def kernel(self) -> str | None:
        """The connection file if the newest run is a Jupyter kernel, else ``None``. Only Jupyter starts and ends it."""
        return self.state.run.kernel if self.state.run else None

    @property
    def output_elsewhere(self) -> bool:
        """Whether tfmemtop does not receive the newest run's output: the run is a process of others, or a kernel."""
        return self.outside or self.kernel is not None

    @property
    def script_goes_on(self) -> bool:
        """Whether, as far as is known, a script that tfmemtop started would go on if the screen ended now."""
        if not self.connected:
            return False
        run, session = self.state.run, self.state.session
        if self.outside:
            return False  # tfmemtop did not start it
        return run.going if run else session is None or bool(session.command)

    @property
    def exit_code(self) -> int:
        """The exit code of the newest run, as a shell reports it.

        It is 0 while the run goes on, in a replay, for a kernel, and for a process that tfmemtop did not start.
        """
        run = self.state.run
        if run is None or run.end is None or not self.source.live or run.outside or run.kernel is not None:
            return 0
        return run.end.shell_code

    # The next run.

    @property
    def next(self) -> NextRun | None:
        """The next run: as the user has chosen it, else the same as the newest; ``None`` before the first."""
        run, chosen = self.state.run, self._chosen
        if chosen is None and run is not None:
            kernels = self.state.upcoming if run.kernel is not None else None
            chosen = NextRun(tuple(run.argv), kernels or run.settings)
        return chosen and chosen.with_frameworks(self.state)

    def choose(self, chosen: NextRun) -> None:
        """Use *chosen* as the next run."""
        self._chosen = chosen
        if self.kernel is not None:
            self.send(events.ForNextStart(settings=chosen.settings))

    # Commands for the engine.

    def relaunch(self) -> None:
        """Start the next run. A run that has not ended is ended first."""
        if upcoming := self.next:
            self._chosen = None
            self.send(events.Relaunch(argv=list(upcoming.argv), settings=upcoming.settings))

    def stop(self) -> None:
        """End the run and the engine."""
        self.leaving = True
        self.send(events.Stop(quit=True))

    def send(self, command: events.Command) -> None:
        """Pass *command* to the engine, if there is one."""
        if self.connected:
            task = asyncio.ensure_future(self._pass_on(command))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _pass_on(self, command: events.Command) -> None:
        try:
            await self.source.send(command)
        except ConnectionError:
            pass  # the engine has gone; the end of the events reports this
