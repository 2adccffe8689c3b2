"""The pseudo-terminal that every run of a session writes to.

The engine leads the session whose controlling terminal this is, as a shell does for an interactive
user, and the script is its foreground process group. Were the script itself the session's leader,
the kernel would hang up on the children it leaves behind when it ends.
"""

import fcntl
import os
import signal
import struct
import termios


class PseudoTerminal:
    """A pty; the engine keeps both ends open, so that reading never meets an end while it lives."""

    def __init__(self, columns: int, rows: int) -> None:
        self.master, self.slave = os.openpty()
        os.set_blocking(self.master, False)
        self.resize(columns, rows)
        self._fresh = termios.tcgetattr(self.slave)
        # A job stopped by Ctrl-Z has no shell here to wake it: let the key through to the script.
        self._fresh[6][termios.VSUSP] = b"\0"
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)

    def resize(self, columns: int, rows: int) -> None:
        """Set the size in cells; the script gets SIGWINCH if it changed."""
        self.columns, self.rows = columns, rows
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def take_over(self) -> None:
        """In the child, before its exec: become the foreground group, and reset the terminal.

        SIGTTOU is blocked afterwards.
        """
        os.setpgid(0, 0)
        # A background group that sets the terminal would be stopped by SIGTTOU.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
        os.tcsetpgrp(0, os.getpid())
        termios.tcsetattr(0, termios.TCSANOW, self._fresh)
        termios.tcflush(0, termios.TCIFLUSH)

    def close(self) -> None:
        """Close both ends; the kernel hangs up on what is still in the foreground."""
        os.close(self.slave)
        os.close(self.master)
