"""Starts the user's own commands when a run ends or runs out of memory."""

import asyncio
import os
import shlex
import signal
import subprocess
from functools import partial
from pathlib import Path

from tfmemtop.engine.own_thread import OwnThread
from tfmemtop.engine.process.launch import Launch
from tfmemtop.engine.process.run import Runs
from tfmemtop.engine.sources.source import Source
from tfmemtop.engine.stream import Stream
from tfmemtop.engine.stream.complaints import complain
from tfmemtop.engine.stream.kept_sessions import kept_recordings
from tfmemtop.events import Event, NoticeKind, OutOfMemory, Run, RunEnd, Stopping
from tfmemtop.exit_codes import SIGNALLED

WAIT_S = 30.0
"""How long the facts of a command are waited for, and then, in :meth:`Alerts.done`, the commands."""


class Alerts(Source):
    """Runs ``launch.on_end`` when a run has ended, and ``launch.on_oom`` at its first out-of-memory error.

    Each command is a line for ``sh``. It is started in the user's folder with the user's environment; its stdio is
    ``/dev/null``. Variables named ``TFMEMTOP_…`` hold the facts of the run. The end of a run that the user ends from
    the screen starts no command. If a command fails, one notice reports it.
    """

    def __init__(self, stream: Stream, launch: Launch, runs: Runs) -> None:
        super().__init__(stream)
        self._launch = launch
        self._runs = runs
        self._starting: set[asyncio.Task[None]] = set()
        self._going: set[asyncio.Future[int]] = set()  # the wait statuses of the commands that go on
        self._thread = OwnThread("alerts")
        self._asked = False  # whether a user has asked for the end of the run
        self._errors = 0

    async def started(self) -> None:
        """Wait until the commands that are due have been started."""
        await asyncio.gather(*self._starting)

    async def done(self) -> None:
        """Wait until all commands have ended, at most :data:`WAIT_S` seconds."""
        await self.started()
        if self._going:
            await asyncio.wait(self._going, timeout=WAIT_S)  # a command may go on after this process has ended

    def on_event(self, event: Event) -> None:
        match event:
            case Run():
                self._asked, self._errors = False, 0
            case Stopping():
                self._asked = True
            case OutOfMemory():
                self._errors += 1
                if self._errors == 1 and self._launch.on_oom:
                    self._tell(self._launch.on_oom, _known(EVENT="oom", OOM_COUNT=1) | _of_error(event))
            case RunEnd():
                if self._launch.on_end and not self._asked:
                    self._tell(self._launch.on_end, _known(EVENT="end", OOM_COUNT=self._errors) | _of_end(event))
            case _:
                pass

    def _tell(self, line: str, facts: dict[str, str]) -> None:
        task = asyncio.get_running_loop().create_task(self._start_with(line, facts, self._stream.backlog.events()))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _start_with(self, line: str, facts: dict[str, str], events: list[Event]) -> None:
        record, whole = self._launch.record, facts["TFMEMTOP_EVENT"] == "end"
        # In a thread: the readings must not wait, and a file system may not answer.
        read = partial(_of_session, events, record, whole=whole)
        try:
            facts |= await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(self._thread, read), WAIT_S)
        except Exception:
            complain()  # the command gets what is known without the state
        self._start(line, facts)

    def _start(self, line: str, facts: dict[str, str]) -> None:
        null = subprocess.DEVNULL
        try:
            process = subprocess.Popen(
                ["/bin/sh", "-c", line],
                cwd=self._launch.cwd,
                env=self._launch.environment | facts,
                stdin=null,
                stdout=null,
                stderr=null,
                start_new_session=True,
            )
        except OSError as error:
            self._stream.notice("alert", NoticeKind.ALERT_NOT_STARTED, detail=error.strerror or str(error))
            return
        process.returncode = 0
        status = self._runs.adopt(process.pid)
        self._going.add(status)
        status.add_done_callback(partial(self._ended, line))

    def _ended(self, line: str, status: asyncio.Future[int]) -> None:
        self._going.discard(status)
        if code := os.waitstatus_to_exitcode(status.result()):
            exit_code = code if code > 0 else SIGNALLED - code
            self._stream.notice("alert", NoticeKind.ALERT_FAILED, detail=line, about=exit_code)


def _of_error(event: OutOfMemory) -> dict[str, str]:
    return _known(DEVICE=event.device, REQUESTED_BYTES=event.requested, OPERATION=event.operation)


def _of_end(event: RunEnd) -> dict[str, str]:
    name = signal.Signals(event.signal).name if event.signal in list(signal.Signals) else event.signal
    return _known(EXIT_CODE=event.exit_code, SIGNAL=name, OOM_KILLED=int(event.oom_killed))


def _of_session(events: list[Event], record: str | None, *, whole: bool) -> dict[str, str]:
    """Return the facts of the session and its run; with *whole*, the run has ended, and its verdict is one of them."""
    # Imported here: most sessions have no such command, and the script starts sooner without.
    from tfmemtop.findings.review import review, verdict
    from tfmemtop.state import State, apply

    state, found = State(), None
    if whole:
        seen = review(events)
        state, found = seen.state, verdict(seen)
    else:
        for event in events:
            apply(state, event)
    run, session = state.run, state.session
    return _known(
        SESSION=session.id if session else None,
        HOST=session.host if session else None,
        RUN=run.run if run else None,
        PID=run.pid if run else None,
        COMMAND=shlex.join(run.argv) if run else None,
        SECONDS=round(state.now - run.started) if run else None,
        PEAK_BYTES=run.peak_in_use if run else None,
        POOL_BYTES=run.peak_pool if run else None,
        OUTPUT=session.output_path if session else None,
        RECORDING=record or kept_recordings().get(session.id if session else ""),
        VERDICT=found.text if found else None,
        CAUSE=str(found.key) if found else None,
    )


def _known(**facts: str | int | Path | None) -> dict[str, str]:
    """Return the variables for those *facts* that are known. NUL is removed, since it would end a variable early."""
    return {f"TFMEMTOP_{name}": str(fact).replace("\0", "") for name, fact in facts.items() if fact is not None}
