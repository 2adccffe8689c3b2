"""A quick compiler for tests of the cache, a recorded script that gets the library from it, the text of failures."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from tests import sparing
from tests.hooked import POOL
from tests.patience import PATIENCE_S, until
from tfmemtop.events import Probe, Unbuilt, decode_event
from tfmemtop.events.recording import read
from tfmemtop.findings.probe import probe_text, unbuilt_remedy, unbuilt_text
from tfmemtop.probe.cache import Built


def said(built: Built) -> tuple[str, str]:
    """Return the reason why there is no probe, and the remedy."""
    unbuilt = msgspec.convert(built.unbuilt, Unbuilt)
    return unbuilt_text(unbuilt, "the probe"), unbuilt_remedy(unbuilt)


def said_by_hook(sent: dict[str, Any]) -> str:
    """Return the text that reports what is wrong, for a message that the hook has *sent*."""
    event = decode_event(json.dumps({"t": 0.0, **sent}).encode())
    assert isinstance(event, Probe)
    return probe_text(event)


class Compiler:
    """A compiler that copies the library built by the real one, and counts how often it links one.

    Before it copies, it waits for a line from the FIFO *gate*, if there is one. Then it runs *extra*, lines of shell.
    It copies *replay* in place of the program that replays allocations; without *replay* it fails to build that
    program. It fails to build the library of addresses.
    """

    def __init__(
        self, folder: Path, library: Path, extra: str = "", replay: Path | None = None, gate: Path | None = None
    ) -> None:
        self.folder = folder
        self.path = folder / "compiler"
        self.log = folder / "log"
        self.log.touch()
        self.path.write_text(
            f"""#!/bin/sh
[ "$1" = --version ] && echo quick {shlex.quote(folder.name)} && exit
made={shlex.quote(str(library))} gate={shlex.quote(str(gate or ""))}
case "$*" in
    *replay*) made={shlex.quote(str(replay or ""))}; [ "$made" ] || exit 1 ;;
    *addresses*) echo "Tensor has no data" >&2; exit 1 ;;
esac
echo built >> {shlex.quote(str(self.log))}
[ -z "$gate" ] || read go < "$gate"
while [ "$1" != -o ]; do shift; done
cp "$made" "$2"
{extra}
"""
        )
        self.path.chmod(0o700)

    @property
    def variables(self) -> dict[str, str]:
        return {"XDG_CACHE_HOME": str(self.folder), "CXX": shlex.quote(str(self.path))}

    @property
    def built(self) -> int:
        return len(self.log.read_text().splitlines())

    @property
    def cache(self) -> Path:
        return self.folder / "tfmemtop"

    def kept(self) -> list[str]:
        """Return the content of the cache without its lock and failures: suffixes of files, and "build" for a build."""
        names = (path.name for path in self.cache.iterdir() if path.name != "lock" and path.suffix != ".failed")
        return sorted("build" if name.startswith("build") else name.rpartition(".")[2] for name in names)


TRAINING = """
import sys, tensorflow as tf
kept = tf.zeros([1 << 20])
for line in sys.stdin:
    tf.zeros([16])
print("trained")
sys.exit(3)
"""

SPEAKER = """
import json, os, signal, socket, sys
line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
line.connect(os.environ["TFMEMTOP_SOCKET"])
tell = lambda **fields: line.send(json.dumps(fields).encode())
tell(type="hook", ppid=1, argv=[], python="3.11.0", executable="", tensorflow=None, tensorflow_path=sys.argv[1])
exec(sys.argv[2])
"""

LOADING = """
while json.loads(line.recv(65536))["do"] != "load":
    pass  # it is told that the library is being built
tell(type="probe", state="loading")
"""

UNTIL_TOLD_TO_END = """
sys.stdin.read()
line.setblocking(False)
told = []
try:
    while packet := line.recv(65536):
        told.append(json.loads(packet)["do"])
except BlockingIOError:
    pass
print("told", [word for word in told if word != "expect"])
sys.exit(3)
"""


def speaker(tensorflow: tuple[Path, str], then: str) -> list[str]:
    """Return a command that sends what the hook sends as this *tensorflow* is being imported, and then runs *then*."""
    return [sys.executable, "-I", "-S", "-c", SPEAKER, str(tensorflow[0]), then]


RECORD = """
import asyncio, os, sys
from tfmemtop.engine.process.launch import Launch
from tfmemtop.cli.record import record
launch = Launch(argv=sys.argv[2:], cwd=os.getcwd(), environment=dict(os.environ), interval_s=0.05)
done = asyncio.run(record(launch, sys.argv[1]))
print(done.end.exit_code, done.end.signal, file=sys.stderr)
"""


class Recorded:
    """``tfmemtop record``, and a script that trains until the end of its input."""

    def __init__(self, path: Path, *argv: str, **variables: str) -> None:
        self.path = path
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [sys.executable, "-c", RECORD, str(path), *argv],
            env={**os.environ, **POOL, "TF_CPP_MIN_LOG_LEVEL": "3", **sparing.for_command(argv), **variables},
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
        )

    def until(self, wanted: Callable[[object], bool]) -> None:
        """Wait until the recording has an event for which *wanted* returns true, or until the run has ended."""
        until(lambda: self.process.poll() is not None or any(map(wanted, self.events())), every_s=0.2)

    def events(self) -> list[object]:
        return list(read(self.path).events()) if self.path.exists() and self.path.stat().st_size else []

    def probes(self) -> list[Probe]:
        return [event for event in self.events() if isinstance(event, Probe) and event.of_library]

    def end(self) -> tuple[str, str]:
        """Return what the script printed, and its exit code and signal as the recorder reports them."""
        assert self.process.stdin is not None
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return out, err.splitlines()[-1]
