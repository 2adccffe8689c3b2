"""Recording without a screen: the script keeps the caller's own stdio and terminal."""

import asyncio
import os
import signal
import traceback
from collections.abc import Callable
from contextlib import suppress

import msgspec

from tfmemtop.engine.canary import WAIT_S, Canary
from tfmemtop.engine.chunks import ChunkMaps
from tfmemtop.engine.dumps import Dumps
from tfmemtop.engine.folders import SessionFolder, open_session
from tfmemtop.engine.hooks import Hooks
from tfmemtop.engine.launch import Launch
from tfmemtop.engine.maps import Maps
from tfmemtop.engine.probe import Probes
from tfmemtop.engine.readings import Readings
from tfmemtop.engine.recorder import Recorder
from tfmemtop.engine.run import Runs
from tfmemtop.engine.session import describe
from tfmemtop.engine.stream import Stream
from tfmemtop.events import RunEnd
from tfmemtop.recording import Writer

_OURS = {
    # What the kernel says of our own process, or of its terminal, and what cannot be caught.
    *(signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGCONT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU),
    *(signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGTRAP, signal.SIGSYS),
    *(signal.SIGPIPE, signal.SIGXFSZ, signal.SIGXCPU, signal.SIGWINCH, signal.SIGURG),
}


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """How the run ended, and why the recording is not complete if it is not."""

    end: RunEnd
    trouble: str | None


async def record(launch: Launch, path: str | os.PathLike[str]) -> Recorded:
    """Run ``launch.argv`` in this process's own terminal and write the stream to *path*.

    The script stays in the foreground group: Ctrl-C reaches it from the terminal, and we wait for
    it. A signal that is sent to us is passed on, unless the whole group heard it. Call
    from the main thread of a process that has no other children, and that ends soon afterwards: signals that
    ask it to end are ignored from the run's end on.

    Raises:
        RecordingError: *path* cannot be recorded to.
        StartError: the script cannot be started.
        ValueError: the settings do not fit this machine.
        OSError: no place for the hook's socket.
    """
    writer = Writer(path)
    folder = open_session()
    try:
        return await _record(launch, folder, writer)
    finally:
        folder.remove()


async def _record(launch: Launch, folder: SessionFolder, writer: Writer) -> Recorded:
    loop = asyncio.get_running_loop()
    stream = Stream()
    stream.publish(describe(launch, "record", None))
    hooks = Hooks(stream, folder.hooks)
    runs = Runs(stream, launch, hook_socket=folder.hook_socket, terminal=None)
    # One that is ignored, as under nohup, is to stay so in the script.
    heeded = {n for n in signal.valid_signals() - _OURS if signal.getsignal(n) is not signal.SIG_IGN}
    canary = Canary(heeded)
    readings = Readings(stream, runs, hooks)
    probes = Probes(stream, hooks, readings.host, enabled=launch.probe)
    dumps = Dumps(stream, hooks, runs.dumps)
    chunks = ChunkMaps(stream, hooks, runs.dumps)
    recorder = Recorder(stream, writer)
    ended = asyncio.Event()

    def reap() -> None:
        try:
            runs.reap()
        finally:
            if runs.running:
                readings.hurry()
            else:
                ended.set()

    def pass_on(number: int) -> None:
        if not canary.heard(number) and runs.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(runs.pid, number)

    def before_end() -> None:
        hooks.drain()
        chunks.drain()
        dumps.drain()

    runs.before_end = before_end
    for number in heeded:
        loop.add_signal_handler(number, loop.call_later, WAIT_S, pass_on, number)
    loop.add_signal_handler(signal.SIGCHLD, reap)
    canary.begin()
    probes.begin()
    Maps(stream, hooks, recording=True).begin()
    dumps.begin()
    chunks.begin()
    hooks.begin()
    readings.begin()
    try:
        runs.start(launch.argv, launch.settings)
        recorder.begin()  # not before: what cannot be started overwrites no recording
        await ended.wait()
    finally:
        # A second HUP, soon after the first, is not to cost the summary and the exit code.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, heeded)
        for number in heeded:
            loop.remove_signal_handler(number)
            if runs.end is not None:
                signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        loop.remove_signal_handler(signal.SIGCHLD)
        _close(canary.close, probes.close, dumps.close, chunks.close, readings.close, hooks.close, recorder.close)
    assert runs.end is not None
    return Recorded(end=runs.end, trouble=recorder.trouble)


def _close(*parts: Callable[[], None]) -> None:
    """Close them all; one that fails costs neither the others nor the exit code."""
    for close in parts:
        try:
            close()
        except Exception:
            traceback.print_exc()
