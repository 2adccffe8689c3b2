"""Scripts that begin with TensorFlow imported, in a tenth of the time: forked from a process that has imported it.

They are for what comes after that: devices, pools, allocations, ends. What begins with the import of TensorFlow needs
a Python of its own. A hook in the first process is in each script, as in all that a script forks before it has made
devices. There it says hello as the first thing that it has to tell, which may be that devices are made.
"""

import fcntl
import json
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_S

SERVER = Path(__file__).with_name("forking.py")


class Forking:
    """The process that has imported TensorFlow. All test workers share one such process for each name.

    It ends with the last of them.
    """

    def __init__(self, shared: Path, name: str, command: list[str], variables: Mapping[str, str]) -> None:
        """*shared* is the workers' common folder; *command* a Python, and *variables* its environment.

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
            if self._line.recv(10):  # else it was about to end
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
        """End this worker's share in the process."""
        self._line.close()


class Forked:
    """A script in a forked process: what ``subprocess.Popen`` has of one, as far as tests need it."""

    def __init__(self, address: str, arguments: list[str], folder: Path, variables: Mapping[str, str]) -> None:
        self.returncode: int | None = None
        """As ``subprocess`` has it, once it has been waited for."""
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
        """Until it has ended."""
        if self.returncode is None:
            self.returncode = int(self._told())
        return self.returncode

    def communicate(self, input: str | None = None, timeout: float | None = PATIENCE_S) -> tuple[str, str]:
        """What it prints to its end on its standard output and error; *input* is what it reads before."""
        self._line.settimeout(timeout)
        with suppress(BrokenPipeError):  # it has ended, or closed its standard input
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
        """Send it a signal."""
        os.kill(self.pid, sig)

    def kill(self) -> None:
        """End it at once."""
        os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """End it if it has not ended, with all that is open to it."""
        self._line.close()
        for pipe in (self.stdin, self.stdout, self.stderr):
            with suppress(BrokenPipeError):
                pipe.close()
