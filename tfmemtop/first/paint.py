"""Draws the first picture on the terminal, in a process of its own."""

import os
import signal
import termios
from ctypes import CDLL

from tfmemtop.first.cards import read_cards
from tfmemtop.first.draw import picture, written
from tfmemtop.first.processes import rows_of

_PR_SET_PDEATHSIG = 1
_BEGUN = "\x1b[?1049h\x1b[?25l"
_LFLAG, _CC = 3, 6


def paint(parent: int) -> bool:
    """Draw, and return whether that was done. It is not if *parent* has sent SIGTERM or has ended."""
    CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        cards = read_cards()
        size = os.get_terminal_size(1)
        text = written(picture(cards, rows_of(cards), size.columns, size.lines))
    except Exception:  # also one in what was read: the screen, which follows, will show everything
        return False
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
    if signal.SIGTERM in signal.sigpending() or os.getppid() != parent:
        return False
    _keep_keys()
    rest = (_BEGUN + text).encode()
    while rest:
        rest = rest[os.write(2, rest) :]
    return True


def _keep_keys() -> None:
    """Keep what is typed from now on for the screen: it is not echoed, and Ctrl-Z is a key. Ctrl-C still ends all."""
    modes = termios.tcgetattr(0)
    modes[_LFLAG] &= ~(termios.ECHO | termios.ICANON)
    modes[_CC][termios.VSUSP] = modes[_CC][termios.VQUIT] = b"\0"
    termios.tcsetattr(0, termios.TCSANOW, modes)
