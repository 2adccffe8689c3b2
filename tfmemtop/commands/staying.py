"""The screen as the task of a Slurm step: the step, and the script with it, lasts only as long as this command.

So once the screen is left this command waits for the script, and ends as it does. Signals that Slurm sends to the task
reach the script.
"""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType

from tfmemtop.engine.stream.client import Client, connect
from tfmemtop.events import CaughtUp, Run, RunEnd, Stop

_MEANT = (signal.SIGUSR1, signal.SIGUSR2)
"""Signals that mean nothing to the screen."""
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
SIGNALLED = 128


def is_task(environment: Mapping[str, str]) -> bool:
    """Whether a step of Slurm ends with this process: it is the step's task, or a script that is waits for it.

    A shell with job control, as of ``srun --pty bash``, goes on without it.
    """
    return "SLURM_STEP_ID" in environment and os.getpgrp() == os.getsid(0)


@contextmanager
def passing_on(socket: str) -> Iterator[None]:
    """While this lasts, pass :data:`_MEANT` on to the script of the engine that listens at *socket*."""

    def pass_on(number: int, _: FrameType | None) -> None:
        threading.Thread(target=asyncio.run, args=(_tell(socket, number),), daemon=True).start()

    before = {number: signal.signal(number, pass_on) for number in _MEANT}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def wait_for_script(socket: str, first: int | None) -> int:
    """Wait until the script has ended; its exit code, or 128 and the number of the signal that ended it.

    *first* is a signal that has already come. Each one is passed on.

    Raises:
        OSError: the engine cannot be reached.
    """
    return asyncio.run(_wait(socket, first))


async def _wait(socket: str, first: int | None) -> int:
    client, loop = await connect(socket), asyncio.get_running_loop()
    pid, code, caught_up = 0, 1, False

    def pass_on(number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, number)

    async for batch in client.events():
        for event in batch:
            if isinstance(event, Run):
                pid = event.pid
            elif isinstance(event, RunEnd):
                pid, code = 0, _code(event)
            caught_up |= isinstance(event, CaughtUp)
        if caught_up and not pid:
            break
        if caught_up and first is not None:
            pass_on(first)
            first = None
        if pid:
            for number in (*_MEANT, *_ENDING):
                loop.add_signal_handler(number, pass_on, number)
    if not pid:
        await _end_engine(client)
    return code


async def _end_engine(client: Client) -> None:
    """Have the engine end now, and wait for that: it must not outlive the step."""
    with suppress(ConnectionError):
        await client.send(Stop(quit=True))
    async for _ in client.events():
        pass


def _code(end: RunEnd) -> int:
    return SIGNALLED + end.signal if end.signal is not None else end.exit_code or 0


async def _tell(socket: str, number: int) -> None:
    with suppress(OSError):  # the engine has gone, and the script with it
        client = await connect(socket)
        pid = await _script(client)
        if pid:
            os.kill(pid, number)
        await client.close()


async def _script(client: Client) -> int:
    pid = 0
    async for batch in client.events():
        for event in batch:
            pid = event.pid if isinstance(event, Run) else 0 if isinstance(event, RunEnd) else pid
            if isinstance(event, CaughtUp):
                return pid
    return 0
