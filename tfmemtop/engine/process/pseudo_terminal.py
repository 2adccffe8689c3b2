"""The script's terminal, and the descriptors that a process without a terminal of its own has.

The pseudo-terminal is the controlling terminal of the engine's process session, as an interactive shell has one. The
script is its foreground process group. If the script itself were the leader of the process session, the Linux kernel
would hang up on the children that the script leaves behind when it ends.
"""

import fcntl
import os
import signal
import struct
import termios


class PseudoTerminal:
    """A pty. The engine keeps both ends open, so that a read never finds an end of file while the engine runs."""

    def __init__(self, columns: int, rows: int) -> None:
        self.master, self.slave = os.openpty()
        os.set_blocking(self.master, False)
        self.resize(columns, rows)
        self._fresh = termios.tcgetattr(self.slave)
        # There is no shell here that could continue a job stopped by Ctrl-Z, so the script receives the key instead.
        self._fresh[6][termios.VSUSP] = b"\0"
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)

    def resize(self, columns: int, rows: int) -> None:
        """Set the size in cells. The script receives SIGWINCH if the size has changed."""
        self.columns, self.rows = columns, rows
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def take_over(self) -> None:
        """Become the foreground process group, and reset the terminal. Called in the child process, before its exec.

        SIGTTOU is blocked afterwards.
        """
        os.setpgid(0, 0)
        # A background group that sets the terminal would be stopped by SIGTTOU.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
        os.tcsetpgrp(0, os.getpid())
        termios.tcsetattr(0, termios.TCSANOW, self._fresh)
        termios.tcflush(0, termios.TCIFLUSH)

    def close(self) -> None:
        """Close both ends. The Linux kernel hangs up on processes that are still in the foreground."""
        os.close(self.slave)
        os.close(self.master)


def detach(log: str) -> None:
    """Replace the caller's stdio: stdin and stdout by ``/dev/null``, stderr by the file *log*.

    If *log* cannot be opened, stderr is ``/dev/null`` too.
    """
    nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError:
        written = os.dup(nowhere)
    for descriptor, target in ((0, nowhere), (1, nowhere), (2, written)):
        os.dup2(target, descriptor)
    os.close(nowhere)
    os.close(written)


def inherited() -> list[int]:
    """Return the file descriptors that the user's shell opened for the script. Call this before any other open."""
    names = map(int, os.listdir("/proc/self/fd"))
    return [number for number in names if number > 2 and _is_inheritable(number)]


def _is_inheritable(descriptor: int) -> bool:
    try:
        return os.get_inheritable(descriptor)
    except OSError:
        return False  # the descriptor of the listing itself, which is closed by now
