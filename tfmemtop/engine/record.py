"""Recording without a screen: the script keeps the caller's own stdio and terminal."""

import asyncio
import os
import signal
import socket
from contextlib import suppress
from pathlib import Path

import msgspec

from tfmemtop.engine.canary import WAIT_S, Canary
from tfmemtop.engine.daemon import become_subreaper
from tfmemtop.engine.dumps import Dumps
from tfmemtop.engine.hooks import Hooks
from tfmemtop.engine.launch import Launch, passing_folder
from tfmemtop.engine.maps import Maps
from tfmemtop.engine.probe import Probes
from tfmemtop.engine.readings import Readings
from tfmemtop.engine.recorder import Recorder
from tfmemtop.engine.run import Runs
from tfmemtop.engine.session import describe
from tfmemtop.engine.sockets import listen
from tfmemtop.engine.stream import Stream
from tfmemtop.events import RunEnd
from tfmemtop.recording import Writer

_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_FROM_THE_TERMINAL = (signal.SIGINT, signal.SIGQUIT)


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """How the run ended, and why the recording is not complete if it is not."""

    end: RunEnd
    trouble: str | None


async def record(launch: Launch, path: str | os.PathLike[str]) -> Recorded:
    """Run ``launch.argv`` in this process's own terminal and write the stream to *path*.

    The script stays in the foreground group: Ctrl-C reaches it from the terminal, and we wait for
    it. TERM, HUP, USR1 and USR2 sent to us are passed on, unless the whole group heard them. Call
    from the main thread of a process that has no other children.

    Raises:
        RecordingError: *path* cannot be recorded to.
        StartError: the script cannot be started.
        ValueError: the settings do not fit this machine.
        OSError: no place for the hook's socket.
    """
    loop = asyncio.get_running_loop()
    stream = Stream()
    writer = Writer(path)
    with passing_folder() as folder:
        hook_socket = Path(folder, "hook.sock")
        stream.publish(describe(launch, "record", None))
        hooks = Hooks(stream, listen(hook_socket, socket.SOCK_SEQPACKET))
        runs = Runs(
            stream,
            cwd=launch.cwd,
            environment=launch.environment,
            interval_s=launch.interval_s,
            hook_socket=hook_socket,
            terminal=None,
        )
        # One that is ignored, as under nohup, is to stay so in the script.
        heeded = {n for n in (*_FORWARDED, *_FROM_THE_TERMINAL) if signal.getsignal(n) is not signal.SIG_IGN}
        canary = Canary(heeded.intersection(_FORWARDED))
        become_subreaper()
        readings = Readings(stream, runs, hooks)
        probes = Probes(stream, hooks, readings.host, enabled=launch.probe)
        dumps = Dumps(stream, hooks, runs.dumps)
        recorder = Recorder(stream, writer)
        ended = asyncio.Event()

        def reap() -> None:
            runs.reap()
            if runs.running:
                readings.hurry()
            else:
                ended.set()

        def pass_on(number: signal.Signals) -> None:
            if not canary.heard(number) and runs.pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(runs.pid, number)

        for number in heeded.intersection(_FROM_THE_TERMINAL):
            loop.add_signal_handler(number, _wait_for_the_script, number)
        for number in heeded.intersection(_FORWARDED):
            loop.add_signal_handler(number, loop.call_later, WAIT_S, pass_on, number)

        def before_end() -> None:
            hooks.drain()
            dumps.drain()

        runs.before_end = before_end
        loop.add_signal_handler(signal.SIGCHLD, reap)
        canary.begin()
        probes.begin()
        Maps(stream, hooks, recording=True).begin()
        dumps.begin()
        hooks.begin()
        try:
            runs.start(launch.argv, launch.settings)
            recorder.begin()
            readings.begin()
            reap()
            await ended.wait()
        finally:
            for number in (*heeded, signal.SIGCHLD):
                loop.remove_signal_handler(number)
            canary.close()
            probes.close()
            dumps.close()
            readings.close()
            hooks.close()
            recorder.close()
    assert runs.end is not None
    return Recorded(end=runs.end, trouble=recorder.trouble)


def _wait_for_the_script(_: signal.Signals) -> None:
    """The terminal has sent it to the script too, which decides what becomes of it."""
