"""The CPU time that the engine's stream takes to send each event to the backlog, three readers and a recording."""

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tests.tools.bench.machine import Machine
from tests.tools.bench.table import Row, spread
from tfmemtop.engine.stream.recorder import Recorder
from tfmemtop.engine.stream.server import Reader
from tfmemtop.engine.stream.stream import Stream
from tfmemtop.events.recording import Writer

READERS = 3
_GPUS, _PROCESSES = 8, 100
_A_SECOND = 10  # the number of readings of each allocator
_DRAIN = "import socket\ns = socket.socket(fileno=0)\nwhile s.recv(1 << 20): pass"


@contextmanager
def _reading(stream: Stream) -> Iterator[Reader]:
    """Provide a reader. Another process reads the other end of its socket, as a screen does."""
    ours, theirs = socket.socketpair()
    with ours, theirs, subprocess.Popen([sys.executable, "-c", _DRAIN], stdin=theirs.fileno()):
        ours.setblocking(False)
        theirs.close()
        yield Reader(stream, ours)
        ours.close()


async def _publish(seconds: int) -> tuple[int, float]:
    """Publish *seconds* of events. Return the number of events, and the seconds of CPU that they took."""
    stream, machine, count = Stream(), Machine(_GPUS, _PROCESSES), 0
    with ExitStack() as stack:
        for event in machine.beginning():
            stream.publish(event)
        readers = [stack.enter_context(_reading(stream)) for _ in range(READERS)]
        recorder = Recorder(stream, lambda: Writer("/dev/null"))
        recorder.begin()
        for reader in readers:
            stream.listen_to_lines(reader.push)
        tasks = [asyncio.ensure_future(reader.write()) for reader in readers]
        taken = 0.0
        for second in range(seconds):
            events = [event for tick in range(_A_SECOND) for event in machine.allocators(second + tick / _A_SECOND)]
            told = [*events, *machine.readings(float(second)), machine.printing(float(second))]
            began = time.process_time()
            for event in told:
                stream.publish(event)
            await asyncio.gather(*(reader.idle.wait() for reader in readers))
            taken += time.process_time() - began
            count += len(told)
        await recorder.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return count, taken


def measure(quick: bool) -> list[Row]:
    """Publish the events of a large machine as fast as possible, and measure that."""
    rounds, seconds = (3, 30) if quick else (7, 120)
    costs = []
    for _ in range(rounds):
        count, taken = asyncio.run(_publish(seconds))
        costs.append(1e6 * taken / count)
    return [
        Row(
            f"an event to the backlog, {READERS} readers and a recording",
            "",
            f"{spread(costs, 1)} µs",
            f"{_GPUS} GPUs, {_PROCESSES} processes, {seconds} s of their readings; CPU time, {rounds} rounds",
        )
    ]
