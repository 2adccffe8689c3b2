"""The screen as the task of a Slurm step or in a container: these end with this command, and the script with them.

So when the user leaves the screen, this command waits for the script and returns its exit code. Signals that Slurm
sends to the task, or Kubernetes to the container, are passed on to the script.
"""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from tfmemtop.engine.process.group_signal import GroupListener
from tfmemtop.engine.stream.server import Client, connect
from tfmemtop.events import CaughtUp, Run, RunEnd, Stop
from tfmemtop.exit_codes import SIGNALLED

_MEANT = (signal.SIGUSR1, signal.SIGUSR2)
"""Signals that the screen itself does not use."""
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)


def listen_to_step() -> GroupListener:
    """Start the listener that notices whether Slurm sent a signal to the whole step. Then the script has it already.

    Raises:
        OSError: the listener cannot be started.
    """
    return GroupListener((*_MEANT, *_ENDING), apart=True)


@contextmanager
def signals_passed_on(socket: str, step: GroupListener) -> Iterator[None]:
    """In this context, pass the signals :data:`_MEANT` on to the script of the engine that listens at *socket*.

    A signal that the whole *step* has received is not passed on.
    """

    def received(number: int, _: FrameType | None) -> None:
        step.received(number, lambda number: asyncio.run(_tell(socket, number)))

    before = {number: signal.signal(number, received) for number in _MEANT}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def wait_for_script(socket: str, first: int | None, step: GroupListener) -> int:
    """Wait until the script has ended; return its exit code, or 128 plus the number of the signal that ended it.

    *first* is a signal that has already arrived. Each signal is passed on, unless the whole *step* has received it.

    Raises:
        OSError: the engine cannot be reached.
    """
    return asyncio.run(_wait(socket, first, step))


async def _wait(socket: str, first: int | None, step: GroupListener) -> int:
    client, loop = await connect(socket), asyncio.get_running_loop()
    pid, code, caught_up = 0, 1, False

    def pass_on(number: int) -> None:
        if pid:
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
            step.received(first, pass_on)
            first = None
        if pid:
            for number in (*_MEANT, *_ENDING):
                loop.add_signal_handler(number, step.received, number, pass_on)
    if not pid:
        await _end_engine(client)
    return code


async def _end_engine(client: Client) -> None:
    """Let the engine end now, and wait until it has: it must not run longer than the step."""
    with suppress(ConnectionError):
        await client.send(Stop(quit=True))
    async for _ in client.events():
        pass


def _code(end: RunEnd) -> int:
    return SIGNALLED + end.signal if end.signal is not None else end.exit_code or 0


async def _tell(socket: str, number: int) -> None:
    with suppress(OSError):  # the engine has ended, and the script with it
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
