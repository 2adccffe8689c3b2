"""Readers that connect late, read slowly, vanish, leave, or send requests."""

import asyncio
import os
import socket
import sys

from tests.engines import READS, Engines
from tfmemtop import events
from tfmemtop.engine.stream import OUTPUT_QUEUE, QUEUE, Stream
from tfmemtop.engine.stream.server import Client, Reader


async def test_a_late_reader_gets_the_present_in_order(engines: Engines) -> None:
    launched = engines.launch(sys.executable, "-u", "-c", READS)
    first = await engines.look(launched.socket)
    await first.until_shown("up")
    await first.until(events.ProcessReadings, lambda readings: bool(readings.processes))
    await first.client.send(events.Input(text="hello\n"))
    await first.until_shown("got hello")
    late = await engines.look(launched.socket)
    await late.until_shown("got hello")
    assert isinstance(late.events[0], events.Session)
    assert late.all(events.Run) == first.all(events.Run)
    assert await late.until(events.Process)
    times = [event.t for event in late.events]
    assert times == sorted(times)
    await late.client.send(events.Input(text="again\n"))
    await first.until_shown("got again")


async def test_a_reader_that_does_not_read_holds_up_nobody(engines: Engines) -> None:
    launched = engines.launch(sys.executable, "-c", "for n in range(300): print('y' * 100_000)\nprint('over')\ninput()")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(launched.socket)
        quick = await engines.look(launched.socket)
        await quick.until_shown("over")
        await quick.client.send(events.Stop(quit=True))
        await quick.until_closed()


async def read_late(told: list[events.Event]) -> list[events.Event]:
    """Return what a reader gets that reads only after all of *told* has been published. The last is a run's end."""
    stream = Stream()
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    reader = Reader(stream, ours)
    stream.listen_to_lines(reader.push)
    for event in told:
        stream.publish(event)
    writing = asyncio.ensure_future(reader.write())
    client = Client(*await asyncio.open_connection(sock=theirs))
    got: list[events.Event] = []
    async for batch in client.events():
        got += batch
        if any(isinstance(event, events.RunEnd) for event in got):
            break
    writing.cancel()
    await client.close()
    ours.close()
    return got


def end(run: int) -> events.RunEnd:
    return events.RunEnd(t=0.0, run=run, exit_code=0, signal=None)


async def test_a_slow_reader_loses_the_oldest_samples_and_is_told() -> None:
    processes = [events.ProcessReading(1, 0.0, 1 << 40)] * 800
    readings = [events.ProcessReadings(t=0.0, processes=processes, host_used=number) for number in range(400)]
    got = await read_late([*readings, end(1)])
    kept = [event.host_used for event in got if isinstance(event, events.ProcessReadings)]
    assert kept == list(range(400 - len(kept), 400))
    assert len(kept) < QUEUE / 16_000
    last_word = [event for event in got if isinstance(event, events.Notice)][-1]
    assert (last_word.kind, last_word.count) == (events.NoticeKind.READER_SLOW, 400 - len(kept))


async def test_a_screen_far_behind_is_moved_to_the_newest_output_and_told_what_it_missed() -> None:
    printed = [
        events.Output(t=0.0, run=1 + number // 100, text=f"{number:16000}", skipped=1000) for number in range(300)
    ]
    got = await read_late([*printed, end(3)])
    first, *rest = [event for event in got if isinstance(event, events.Output)]
    assert rest[-1].text == f"{299:16000}" and 16_000 * len(rest) < OUTPUT_QUEUE
    assert [int(event.text) for event in rest] == list(range(int(first.text) + 1, 300))
    assert (first.run, first.skipped) == (3, 1000 + (int(first.text) - 200) * 17_000)
    assert {event.skipped for event in rest} == {1000}
    assert not [event for event in got if isinstance(event, events.Notice)]


async def test_a_command_that_cannot_be_read_is_told_and_does_no_harm(engines: Engines) -> None:
    launched = engines.launch(sys.executable, "-u", "-c", READS)
    screen = await engines.look(launched.socket)
    _, writer = await asyncio.open_unix_connection(launched.socket)
    hostile = [b'{"do":"fly"}', b"\xff\xfe", b"[" * 100_000, b'{"do":"resize","columns":%d,"rows":1}' % 10**310]
    hostile += [b'{"do":"signal","pids":[%s],"signal":15}' % b",".join([b"0"] * 200_000)]
    hostile += [b'{"do":"stop","grace_s":1e300}', b'{"do":"map_wanted","pid":1,"device":"x","pace_s":-1}']
    writer.write(b"".join(line + b"\n" for line in hostile))

    def all_told(_: events.Notice) -> bool:
        return len({notice.detail for notice in screen.all(events.Notice) if notice.key == "command"}) == len(hostile)

    await screen.until(events.Notice, all_told)
    writer.write(b'{"do":"input","text":"after\\n"}\n')
    await screen.until_shown("got after")
    writer.close()


async def test_the_environment_of_a_process(engines: Engines) -> None:
    screen = await engines.python(READS, environment=dict(os.environ) | {"TF_SOMETHING": "set"})
    run = await screen.until(events.Run)
    await screen.until_shown("up")
    await screen.client.send(events.ReadEnvironment(pid=run.pid))
    found = await screen.until(events.Environment)
    assert (found.variables["TF_SOMETHING"], found.error) == ("set", None)
    await screen.client.send(events.ReadEnvironment(pid=2**22 + 1))
    gone = await screen.until(events.Environment, lambda environment: environment.pid != run.pid)
    assert gone.error
