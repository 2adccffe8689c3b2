"""Scripts in forked children of a process that has imported TensorFlow, which takes longer than all that they do.

The agent begins anew in each, as in the workers of ``multiprocessing``. What concerns a program's start or the import
itself needs a process of its own.
"""

import json
import os
import signal
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.patience import PATIENCE_S

IMPORTED = Path(__file__).parents[1] / "scripts" / "imported.py"


class Forked:
    """A script that runs, with what tests need of ``subprocess.Popen``."""

    def __init__(self, line: socket.socket, arguments: tuple[str, ...]) -> None:
        """*line* leads to a process of ``tests/scripts/imported.py``."""
        (read, typed), (out, written), (err, told) = os.pipe(), os.pipe(), os.pipe()
        socket.send_fds(line, [json.dumps(arguments).encode()], [read, written, told])
        for stream in (read, written, told):
            os.close(stream)
        self.stdin, self.stdout, self.stderr = os.fdopen(typed, "w"), os.fdopen(out), os.fdopen(err)
        self.returncode: int | None = None
        self._line = line
        self.pid = int(line.recv(100))

    def wait(self) -> int:
        """Its exit code, or the negative number of the signal that it died of."""
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(int(self._line.recv(100)))
        return self.returncode

    def send_signal(self, sig: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, sig)

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:
        """What it wrote on its standard output and error, once it has read *input* and ended."""
        try:
            self.stdin.write(input or "")
            self.stdin.close()
        except BrokenPipeError:
            pass  # it had ended, or closed its standard input
        with ThreadPoolExecutor(2) as readers:
            out, err = readers.submit(self.stdout.read), readers.submit(self.stderr.read)
            told = out.result(timeout), err.result(timeout)
        self.wait()
        return told

    def close(self) -> None:
        """Whether or not it has ended."""
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()
        for stream in (self.stdin, self.stdout, self.stderr):
            stream.close()


class Imported:
    """A process that has imported TensorFlow. One script at a time is its child."""

    def __init__(self, python: str, variables: dict[str, str]) -> None:
        """It will be started once there is need of it, with the environment *variables*."""
        self._python, self._variables = python, variables
        self._process: subprocess.Popen[bytes] | None = None
        self._line, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line.settimeout(PATIENCE_S)
        self._last: Forked | None = None

    def begin(self) -> None:
        """Import TensorFlow, unless that has been done, and wait until it is."""
        if self._process is None:
            self._process = subprocess.Popen(
                [self._python, IMPORTED], env=self._variables, stdin=self._theirs.fileno(), stdout=subprocess.DEVNULL
            )
            self._theirs.close()
            assert self._line.recv(100) == b"ready"

    def start(self, *arguments: str) -> Forked:
        """Start a script with its *arguments*, the first of which is its path."""
        self.begin()
        self.end_last()
        self._last = Forked(self._line, arguments)
        return self._last

    def end_last(self) -> None:
        """Leave nothing of the script that was started last."""
        if self._last is not None:
            self._last.close()
            self._last = None

    def close(self) -> None:
        """End it."""
        self.end_last()
        self._line.close()
        self._theirs.close()
        if self._process is not None:
            self._process.wait(PATIENCE_S)
