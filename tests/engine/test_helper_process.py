"""Processes of tfmemtop beside the script, such as the replay of its allocations."""

import asyncio
import os
import signal

import pytest

from tfmemtop.engine.sources.source import helper_output


@pytest.mark.programs
async def test_a_helper_that_nobody_waits_for_is_killed_even_before_it_is_read() -> None:
    for turns in range(4):  # of the event loop: the first start the process and open its pipe
        sessions: set[int] = set()
        waiting = asyncio.create_task(helper_output(["sleep", "600"], 600.0, sessions))
        await asyncio.sleep(0)
        for _ in range(turns):
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        (pid,) = sessions
        _, status = await asyncio.to_thread(os.waitpid, pid, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL and waiting.cancelled()


@pytest.mark.programs
async def test_helpers_that_have_ended_are_forgotten() -> None:
    sessions: set[int] = set()
    for _ in range(3):
        assert await helper_output(["echo", "done"], 600.0, sessions) == b"done\n"
        (pid,) = sessions
        await asyncio.to_thread(os.waitpid, pid, 0)
