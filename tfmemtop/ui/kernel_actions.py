"""The actions for a Jupyter kernel: Jupyter restarts it, and the screen goes on with the session of its next start."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from tfmemtop.events.recording import RecordingError, read
from tfmemtop.experiments.session.next_run import NextRun
from tfmemtop.experiments.session.session import Session
from tfmemtop.options import ScreenOutcome
from tfmemtop.state import State, apply
from tfmemtop.state.model import RunState
from tfmemtop.ui.draw.palette import Glyphs
from tfmemtop.ui.screen_app import ScreenApp

_LONG_S = 3600.0


def run_in(path: Path) -> RunState | None:
    """Return the last run in the recording of a session that is over.

    The result is ``None`` if the recording cannot be read or contains no run. From a recording of more than an hour,
    only the lowest and the highest readings of every ten seconds are used.
    """
    state = State()
    try:
        recording = read(path)
        end = recording.duration()
        for event in recording.outline(end, end) if end > _LONG_S else recording.events():
            apply(state, event)
    except RecordingError:
        return None
    run = state.run
    if run is not None and run.ended is None:
        run.ended = state.now  # the kernel was started again, so this run has ended; its end was not recorded
    return run


CHOSEN = "It holds from the kernel's next restart. [R] restarts it."
NOT_RECOGNISED = (
    "VS Code gives a kernel another name at each start, so no choice here can reach the next one. "
    "Set it for the kernelspec: tfmemtop kernel install --help."
)
RESTARTING = "Jupyter restarts the kernel"
NO_COMMAND_LINE = "The command line of a kernel is Jupyter's. Growth, limit, allocator and GPUs can be chosen."
NO_SEARCH = "A search runs a program again and again. A kernel is started by Jupyter. [L] sets its limit."


def hold_from_restart(settings: Sequence[str]) -> str:
    """Return which settings the kernel's next start has."""
    return f"Its next start: {' · '.join(settings)}. That holds from its next restart, no matter who restarts it."


def not_restarted(detail: str) -> str:
    """Return the error for a server that was requested to restart the kernel, and did not do it."""
    return f"Jupyter has not restarted the kernel: {detail}. Restart it where the notebook is open."


_LOOK_S = 1.0

Successor = Callable[[str], str | None]
RecordingOf = Callable[[str], Path | None]
"""The types of ``successor`` and ``recording`` in :class:`tfmemtop.options.UiOptions`."""


class KernelActions(ScreenApp):
    """The part of the app that is about Jupyter kernels."""

    session: Session
    glyphs: Glyphs

    def redraw(self) -> None:
        """Let the screens draw the state."""
        raise NotImplementedError

    def follow_restarts(self, successor: Successor) -> None:
        """After the kernel has ended, look every second for the session of its next start, and exit to show it."""

        async def look() -> None:
            state: State = self.session.state
            run, session = state.run, state.session
            if run is None or session is None or run.kernel is None or run.ended is None:
                return
            found = await asyncio.to_thread(successor, session.id)
            if found is not None:
                self.exit(ScreenOutcome(0, follow=found))

        self.set_interval(_LOOK_S, look)

    def find_earlier(self, recording: RecordingOf) -> None:
        """Read those recordings of the kernel's earlier starts that have not been read yet."""

        async def find() -> None:
            run = self.session.state.run
            for session in run.earlier if run is not None else ():
                path = recording(session)
                if session in self.session.earlier or path is None:
                    continue
                if (found := await asyncio.to_thread(run_in, path)) is not None:
                    self.session.earlier[session] = found
                    self.redraw()

        self.run_worker(find(), group="earlier", exclusive=True)

    def of_kernel(self, told: str) -> bool:
        """Return whether the newest run is a kernel. If it is, notify the user with the text *told*."""
        if self.session.kernel is not None:
            self.notify(told)
        return self.session.kernel is not None

    def ask_to_restart(self, connection: str, upcoming: NextRun) -> None:
        """Offer to let Jupyter restart the kernel whose connection file is *connection*."""
        self.run_worker(self._restart(connection, upcoming), group="kernel", exclusive=True)

    async def _restart(self, connection: str, upcoming: NextRun) -> None:
        from tfmemtop.notebooks.server import NotRestarted, find, restart
        from tfmemtop.ui.screens.questions import kernel_dialog

        found = await asyncio.to_thread(find, connection)
        agreed = await self.push_screen_wait(kernel_dialog(found, connection, upcoming, self.glyphs))
        if not agreed or found is None:
            return
        self.notify(RESTARTING)
        try:
            await asyncio.to_thread(restart, found)
        except NotRestarted as error:
            self.notify(not_restarted(error.detail))
