"""Scripts that are forked from a process that has imported TensorFlow. They start in a tenth of the time.

They are for tests of what comes after the import: devices, pools, allocations, ends. A test of the import itself needs
a new Python process. A hook in the first process is also in each script, as in every process that a script forks
before it has made devices. In a script, the hook sends its hello only when it has something to report, which may be
that devices are made.
"""

import fcntl
import json
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_S

SERVER = Path(__file__).with_name("forking.py")


class Forking:
    """The process that has imported TensorFlow. All test workers share one such process for each name.

    It ends when the last worker has closed its connection.
    """

    def __init__(self, shared: Path, name: str, command: list[str], variables: Mapping[str, str]) -> None:
        """Connect to the process *name*, or start it.

        *shared* is the workers' common folder, *command* starts a Python, and *variables* is its environment.

        A relative path in *variables* is relative to the folder of each script.
        """
        note = shared / f"forking-{name}"
        with note.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not note.exists() or not self._reaches(note.read_text()):
                self._begin(note, command, variables)

    def _reaches(self, address: str) -> bool:
        self.address = address
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._line.connect(address)
            if self._line.recv(10):  # otherwise it was about to end
                return True
        except OSError:
            pass
        self._line.close()
        return False

    def _begin(self, note: Path, command: list[str], variables: Mapping[str, str]) -> None:
        address = tempfile.mkdtemp(prefix="tfm", dir="/tmp") + "/forking"  # a socket's path has to be short
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(address)
            listener.listen(64)
            self._process = subprocess.Popen(
                [*command, str(SERVER), str(listener.fileno())],
                env=dict(variables),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[listener.fileno()],
            )
            assert self._reaches(address)
        note.write_text(address)

    def start(self, path: str, *arguments: str, folder: Path, **variables: str) -> "Forked":
        """Run the script at *path* in *folder*, with more *variables* in its environment."""
        return Forked(self.address, [path, *arguments], folder, variables)

    def close(self) -> None:
        """Close this worker's connection to the process."""
        self._line.close()


class Forked:
    """A script in a forked process. It has those parts of ``subprocess.Popen`` that tests need."""

    def __init__(self, address: str, arguments: list[str], folder: Path, variables: Mapping[str, str]) -> None:
        self.returncode: int | None = None
        """The return code as in ``subprocess``. It is None until the end has been waited for."""
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line.settimeout(PATIENCE_S)
        self._line.connect(address)
        assert self._line.recv(10)
        (stdin, typed), (out, stdout), (err, stderr) = os.pipe(), os.pipe(), os.pipe()
        self.stdin, self.stdout, self.stderr = os.fdopen(typed, "w"), os.fdopen(out), os.fdopen(err)
        wanted = {"arguments": arguments, "folder": str(folder), "variables": dict(variables)}
        given = [stdin, stdout, stderr]
        socket.send_fds(self._line, [json.dumps(wanted).encode()], given)
        for pipe in given:
            os.close(pipe)
        self.pid = int(self._told())

    def _told(self) -> Any:
        packet = self._line.recv(1000)
        assert packet, "TensorFlow's process has ended"
        return json.loads(packet)

    def wait(self) -> int:
        """Wait until the script has ended, and return its return code."""
        if self.returncode is None:
            self.returncode = int(self._told())
        return self.returncode

    def communicate(self, input: str | None = None, timeout: float | None = PATIENCE_S) -> tuple[str, str]:
        """Write *input* to the script, wait for its end, and return its standard output and standard error."""
        self._line.settimeout(timeout)
        with suppress(BrokenPipeError):  # the script has ended, or closed its standard input
            self.stdin.write(input or "")
            self.stdin.close()
        readers = ThreadPoolExecutor(2)
        try:
            out, err = readers.submit(self.stdout.read), readers.submit(self.stderr.read)
            told = out.result(timeout), err.result(timeout)
        finally:
            readers.shutdown(wait=False)
        self.wait()
        return told

    def send_signal(self, sig: int) -> None:
        """Send the signal *sig* to the script."""
        os.kill(self.pid, sig)

    def kill(self) -> None:
        """Kill the script at once."""
        os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """End the script if it still runs, and close all pipes to it."""
        self._line.close()
        for pipe in (self.stdin, self.stdout, self.stderr):
            with suppress(BrokenPipeError):
                pipe.close()


Fork = Callable[..., Forked]
"""The type of the fixtures that fork a script: its source, its arguments, and by name its environment variables."""
