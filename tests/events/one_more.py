"""A program with one event more than tfmemtop has: a class, and a handler of the fold.

It sends this event the whole way: from a hook to readers, to a recording, and to the fold.
"""

import asyncio
import json
import socket
import sys
from pathlib import Path

from tests import streams
from tfmemtop.bounds import Number, Size
from tfmemtop.engine.sources.hooks import Hooks
from tfmemtop.engine.stream.client import Client, connect
from tfmemtop.engine.stream.folders import listen
from tfmemtop.engine.stream.recorder import Recorder
from tfmemtop.engine.stream.server import Server
from tfmemtop.engine.stream.stream import Stream
from tfmemtop.events import Event, Origin, RunEnd
from tfmemtop.events.base import Newest
from tfmemtop.events.recording import Writer, read
from tfmemtop.state import State, apply
from tfmemtop.state.fold_memory import folds


class Collected(Event, tag="collected", frozen=True):
    """Python's garbage collector has run in a process."""

    origin = Origin.HOOK
    keep = Newest(3, "pid")
    droppable = True

    pid: Number
    took_us: Size


FOLDED: list[int] = []


@folds(Collected)
def _collected(state: State, event: Collected) -> None:
    FOLDED.append(event.took_us)


async def _told(client: Client) -> list[int]:
    """Return the values in the new events that a reader receives until the run ends."""
    told: list[int] = []
    async for batch in client.events():
        told += [event.took_us for event in batch if isinstance(event, Collected)]
        if any(isinstance(event, RunEnd) for event in batch):
            break
    await client.close()
    return told


async def main(folder: Path) -> None:
    """Print the values that an early reader, a late reader and the recording received."""
    stream = Stream()
    hooks = Hooks(stream, listen(folder / "hook.sock", socket.SOCK_SEQPACKET))
    connected = asyncio.Event()
    listener = listen(folder / "engine.sock", socket.SOCK_STREAM)
    server = Server(stream, listener, take=lambda reader, command: None, changed=connected.set)
    recorder = Recorder(stream, lambda: Writer(folder / "run.tfm"))
    hooks.begin()
    server.begin()
    stream.publish(streams.session())
    recorder.begin()
    early = asyncio.create_task(_told(await connect(folder / "engine.sock")))
    await connected.wait()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as hook:
        hook.connect(str(folder / "hook.sock"))
        for number in range(10):
            hook.send(b'{"type":"collected","took_us":%d}' % number)
        hooks.drain()
    stream.publish(RunEnd(t=stream.now(), run=1, exit_code=0, signal=None))
    late = await _told(await connect(folder / "engine.sock"))
    hooks.close()
    await server.close()
    await recorder.close()
    state = State()
    for event in read(folder / "run.tfm").events():
        apply(state, event)
    print(json.dumps({"early": await early, "late": late, "folded": FOLDED}))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
