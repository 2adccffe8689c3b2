"""The pseudo-terminal that every run of a session writes to.

It is the controlling terminal of the engine's process session, as an interactive shell has one. The script is its
foreground process group. If the script itself were the leader of the process session, the Linux kernel would hang up on
the children that the script leaves behind when it ends.
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
