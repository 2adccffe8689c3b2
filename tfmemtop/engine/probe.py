"""Has the probe built beside the running script, and hands it to the hooks."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tfmemtop.engine.hooks import Hooks
from tfmemtop.engine.host import Host
from tfmemtop.engine.launch import own_environment
from tfmemtop.engine.stream import Stream
from tfmemtop.events import AnyEvent, Hook, HookEnd, Probe
from tfmemtop.probe.build import Built

_QUICK_S = 0.5  # a library that is there already is handed over before anybody needs to know
_BUILD_S = 400.0


class Probes:
    """Sees to it that every hooked process gets the library for its own TensorFlow."""

    def __init__(self, stream: Stream, hooks: Hooks, host: Host, *, enabled: bool = True) -> None:
        self._stream = stream
        self._hooks = hooks
        self._host = host
        self._enabled = enabled
        self._builds: dict[tuple[str, str], _Build] = {}
        self._waiting: dict[int, tuple[str, str]] = {}  # by process

    def begin(self) -> None:
        """Start listening to the stream; needs the running loop."""
        self._loop = asyncio.get_running_loop()
        self._stream.listen(self._take)

    def close(self) -> None:
        """Stop; a build under way goes on by itself, for the next time."""
        self._stream.forget(self._take)
        for build in self._builds.values():
            build.let_go()

    def _take(self, event: AnyEvent) -> None:
        # Later, since what is published from here would reach some readers before this event.
        if isinstance(event, Hook) and event.tensorflow and event.tensorflow_path:
            self._loop.call_soon(self._provide, event.pid, (event.tensorflow_path, event.tensorflow))
        elif isinstance(event, HookEnd):
            self._waiting.pop(event.pid, None)

    def _provide(self, pid: int, tensorflow: tuple[str, str]) -> None:
        if not self._enabled:
            text = "left out by --no-probe: pools are not known, only what is in use of them"
            self._stream.publish(Probe(t=0.0, pid=pid, state="unavailable", text=text))
            return
        self._waiting[pid] = tensorflow
        build = self._builds.get(tensorflow)
        if build is None or build.outdated:
            build = self._builds[tensorflow] = _Build(self._loop, tensorflow, self._deliver)
            self._host.apart.add(build.pid)
        if build.built is not None:
            self._deliver(tensorflow, build.built)
        else:
            self._loop.call_later(_QUICK_S, self._say_building, pid, tensorflow)

    def _say_building(self, pid: int, tensorflow: tuple[str, str]) -> None:
        if self._waiting.get(pid) == tensorflow:
            text = f"the probe for TensorFlow {tensorflow[1]} is being built, once, beside the script"
            self._stream.publish(Probe(t=0.0, pid=pid, state="building", text=text))

    def _deliver(self, tensorflow: tuple[str, str], built: Built) -> None:
        for pid in [pid for pid, wanted in self._waiting.items() if wanted == tensorflow]:
            del self._waiting[pid]
            if built.state == "built":
                self._hooks.send(pid, {"do": "load", "path": built.path})
                text = "the probe is built, and loaded once TensorFlow has made its devices"
                self._stream.publish(Probe(t=0.0, pid=pid, state="built", text=text))
            else:
                self._stream.publish(Probe(t=0.0, pid=pid, state=built.state, text=built.text, remedy=built.remedy))


class _Build:
    """A process that builds, read through its stdout alone: its exit status goes to whoever reaps the script."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        tensorflow: tuple[str, str],
        done: Callable[[tuple[str, str], Built], None],
    ) -> None:
        self._loop = loop
        self._tensorflow = tensorflow
        self._done = done
        self._output = b""
        self.built: Built | None = None
        process = subprocess.Popen(
            [sys.executable, "-m", "tfmemtop.probe.build", *tensorflow],
            cwd="/",
            env=own_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # nothing that ends the script or leaves a terminal ends it
        )
        process.returncode = 0
        assert process.stdout is not None
        self.pid = process.pid
        self._pipe = process.stdout
        os.set_blocking(self._pipe.fileno(), False)
        loop.add_reader(self._pipe.fileno(), self._readable)
        self._limit = loop.call_later(_BUILD_S, self._give_up)

    @property
    def outdated(self) -> bool:
        """Whether what was built is no longer there."""
        return self.built is not None and self.built.state == "built" and not Path(self.built.path).exists()

    def let_go(self) -> None:
        """Stop waiting for it."""
        self._limit.cancel()
        if not self._pipe.closed:
            self._loop.remove_reader(self._pipe.fileno())
            self._pipe.close()

    def _readable(self) -> None:
        data = self._pipe.read()
        if data:
            self._output += data
        elif data is not None:
            self.let_go()
            self._finish(_parse(self._output))

    def _give_up(self) -> None:
        self.let_go()
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it ended this very moment
        self._finish(Built("failed", "", f"the probe was not built within {_BUILD_S:.0f} s"))

    def _finish(self, built: Built) -> None:
        self.built = built
        self._done(self._tensorflow, built)


def _parse(output: bytes) -> Built:
    lines = output.decode(errors="replace").strip().splitlines() or ["it said nothing"]
    try:
        return Built(**json.loads(lines[-1]))
    except (ValueError, TypeError):
        return Built("failed", "", f"the probe could not be built: {lines[-1]}")
