"""Ends the run that goes on, and starts the next one."""

import asyncio
from collections.abc import Callable

from tfmemtop.engine.opening import unstarted
from tfmemtop.engine.process.run import Prepared
from tfmemtop.engine.stream.complaints import complain
from tfmemtop.engine.watch import Watch
from tfmemtop.events import Level, NoticeKind, Relaunch
from tfmemtop.events.unstarted import StartError


class Relauncher:
    """Carries out the commands to end a run and to start the next. A newer command replaces one that is under way.

    *changed* is called whenever one has been carried out. Create it in the running loop.
    """

    def __init__(self, watch: Watch, changed: Callable[[], None]) -> None:
        self._watch = watch
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        self._preparing: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._next: Prepared | None = None
        self._for_good = False

    @property
    def busy(self) -> bool:
        """Whether a run is being prepared or ended."""
        return self._preparing is not None or self._ending is not None

    @property
    def over(self) -> bool:
        """Whether the end of the last run was commanded, and has come."""
        return self._for_good and self._ending is None

    def relaunch(self, command: Relaunch) -> None:
        """Prepare the run of *command*, end the present one, start it. If it cannot start, the present one stays."""
        self._forget_next()
        self._preparing = self._loop.create_task(self._prepare(command))

    def stop(self, grace_s: float, *, for_good: bool) -> None:
        """End the present run, whose processes get *grace_s* seconds for that. *for_good*: no other run follows."""
        self._for_good = self._for_good or for_good
        self._forget_next()
        self._end(grace_s)

    def _forget_next(self) -> None:
        self._next = None
        if self._preparing is not None:
            self._preparing.cancel()
            self._preparing = None

    async def _prepare(self, command: Relaunch) -> None:
        try:
            self._next = await self._watch.prepare(command.argv, command.settings)
        except Exception as error:
            if not isinstance(error, StartError | ValueError):
                complain()
            self._refuse(error)
        else:
            self._watch.stream.withdraw("relaunch")
            self._end(command.grace_s)
        self._preparing = None
        self._changed()

    def _end(self, grace_s: float) -> None:
        if self._ending is not None:
            self._watch.ending.hasten(grace_s)
        else:
            self._ending = self._loop.create_task(self._end_and_go_on(grace_s))

    async def _end_and_go_on(self, grace_s: float) -> None:
        try:
            if self._watch.runs.number:
                await self._watch.ending.end(grace_s)
            run, self._next = self._next, None
            if run is not None and not self._for_good:
                self._watch.start(run)
        except StartError as error:
            self._refuse(error)
        except Exception as error:
            complain()
            detail = f"{type(error).__name__}: {error}"
            self._watch.stream.notice("ending", NoticeKind.ENDING_FAILED, Level.ERROR, detail)
        finally:
            self._ending = None
            self._changed()

    def _refuse(self, error: Exception) -> None:
        self._watch.stream.notice("relaunch", NoticeKind.NOT_RELAUNCHED, Level.ERROR, unstarted=unstarted(error))
