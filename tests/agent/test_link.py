"""The agent's line to the monitor, on real sockets."""

import os
import resource
import socket
import tracemalloc
from pathlib import Path

from tests.hooked import Monitor
from tests.limited import limited
from tfmemtop.agent.link import QUEUE, Link
from tfmemtop.agent.messenger import encode


def descriptor(link: Link) -> int:
    assert link._socket is not None
    return link._socket.fileno()


def test_its_descriptor_is_out_of_the_scripts_way_and_not_inherited(monitor: Monitor) -> None:
    free = os.dup(0)
    os.close(free)
    link = Link(str(monitor.path))
    link.send(encode("said", {"text": "x"}))
    assert descriptor(link) >= 200 and not os.get_inheritable(descriptor(link))
    again = os.dup(0)
    os.close(again)
    assert again == free
    link.close()


def test_a_script_that_closed_it_and_uses_its_number_gets_nothing_from_us(monitor: Monitor) -> None:
    link = Link(str(monitor.path))
    link.send(encode("said", {"text": "first"}))
    mine, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    number = descriptor(link)
    os.dup2(mine.fileno(), number)
    link.send(encode("said", {"text": "second"}))
    link.close()
    other.setblocking(False)
    mine.close()
    os.close(number)  # still open: the link has not closed it
    assert other.recv(100) == b""
    assert [event["text"] for event in monitor.of("said")] in ([], ["first"])
    other.close()


def test_until_the_monitor_accepts_packets_wait_and_then_are_counted_out(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen(0)
        first = Link(str(tmp_path / "s"))
        first.send(b"{}")
        link = Link(str(tmp_path / "s"))
        for number in range(QUEUE + 10):
            link.send(b"%d" % number)
        assert link.dropped == 10 and not link.dead
        listener.accept()[0].close()
        link.pump()
        with listener.accept()[0] as line:
            assert [line.recv(10) for _ in range(3)] == [b"0", b"1", b"2"]
        link.listen()
        assert link.dead
        first.close()


def test_a_packet_beyond_all_bounds_is_dropped_alone(monitor: Monitor) -> None:
    link = Link(str(monitor.path))
    link.send(b"x" * (1 << 22))
    link.send(encode("hook_error", {"text": "\udcff" + "x" * 100_000}))
    assert monitor.error()["text"].startswith("\\udcffxxx")
    assert link.dropped == 1
    link.close()


def test_without_a_free_descriptor_packets_wait(monitor: Monitor) -> None:
    link = Link(str(monitor.path))
    with limited(resource.RLIMIT_NOFILE, 3):
        link.send(encode("hook_error", {"text": "first"}))
    assert not link.opened and not link.dead
    link.pump()
    assert monitor.error()["text"] == "first"
    link.close()


def test_many_packets_leave_nothing_behind(tmp_path: Path) -> None:
    """This holds for packets that are read and for packets that are not."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen(1)
        link = Link(str(tmp_path / "s"))
        link.send(b"{}")
        with listener.accept()[0] as reader:
            before = len(list(Path("/proc/self/fd").iterdir()))
            tracemalloc.start()
            try:
                for _ in range(1000):
                    link.offer(b"x" * 200)
                    reader.recv(1000)
                known = tracemalloc.get_traced_memory()[0]
                for _ in range(5_000):
                    link.offer(b"x" * 200)
                    reader.recv(1000)
                    link.listen()
                for _ in range(5_000):
                    link.send(b"x" * 200)
                    link.offer(b"x" * 200)
                assert tracemalloc.get_traced_memory()[0] - known < (QUEUE + 100) * 300
            finally:
                tracemalloc.stop()
            assert len(list(Path("/proc/self/fd").iterdir())) == before and link.dropped > 9_000
        link.close()
