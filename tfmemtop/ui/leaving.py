"""Signals that end the screen: it leaves as if it had been quit, with the terminal as it was."""

import asyncio
import atexit
import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

from tfmemtop.crash import at_crash

_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT)

_LOOK_S = 1.0  # between two looks whether the terminal is still there

PATIENCE_S = 10
"""How long a screen that hangs, or whose terminal no longer takes anything, has for leaving in order."""


class Ended(Protocol):
    """An app that ends in order, or if it hangs, at least leaves the terminal as it was."""

    def end_for(self, number: int) -> None: ...

    def give_terminal_back(self) -> None: ...


@contextmanager
def signals_end(app: Ended) -> Iterator[None]:
    """While this lasts, a signal that ends programs ends *app*; one that is ignored, as under nohup, stays so.

    Needs the running loop, and the main thread.
    """
    loop = asyncio.get_running_loop()
    heeded = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    heard: list[int] = []

    # Not by the loop: where that hangs, the last resort must work all the same.
    def end(number: int, _: FrameType | None) -> None:
        if not heard:
            heard.append(number)
            signal.alarm(PATIENCE_S)
            loop.call_soon_threadsafe(app.end_for, number)

    def last_resort(*_: object) -> None:
        app.give_terminal_back()
        os._exit(128 + heard[0] if heard else 1)

    # Under nohup a terminal that is closed sends no signal, and Textual would read its end again and again.
    terminal = select.poll()
    terminal.register(sys.__stdin__.fileno() if sys.__stdin__ else 0, 0)

    looking: asyncio.TimerHandle

    def look() -> None:
        nonlocal looking
        if not heard and terminal.poll(0):
            end(signal.SIGHUP, None)
        looking = loop.call_later(_LOOK_S, look)

    looking = loop.call_later(_LOOK_S, look)
    before = {number: signal.signal(number, end) for number in heeded}
    alarm = signal.signal(signal.SIGALRM, last_resort)
    try:
        with at_crash(lambda _: app.give_terminal_back()):
            yield
    finally:
        looking.cancel()
        for number, handler in before.items():
            # Whoever sends two of them (a scheduler, a terminal that closes) is to read what is still to be said.
            signal.signal(number, signal.SIG_IGN if heard else handler)
        if heard:
            # The last resort holds until Python has waited for all threads. Later its handler is gone, and the alarm
            # itself would end us.
            atexit.register(signal.alarm, 0)
        else:
            signal.signal(signal.SIGALRM, alarm)
        sys.stdout.flush()
