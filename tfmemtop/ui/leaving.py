"""Signals that end the screen: the app ends as if the user had quit, and the terminal is restored."""

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
from tfmemtop.exit_codes import SIGNALLED

_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT)

_LOOK_S = 1.0  # between two checks whether the terminal is still open

PATIENCE_S = 10
"""Seconds that the app has to end in order. After that it is ended: it hangs, or its terminal takes no output."""


class Ended(Protocol):
    """An app that can end in order, and that can at least restore the terminal if it hangs."""

    def end_for(self, number: int) -> None: ...

    def give_terminal_back(self) -> None: ...


@contextmanager
def signals_end(app: Ended) -> Iterator[None]:
    """Within this context, end *app* in order on any signal that ends programs.

    A signal that was ignored before, as under nohup, stays ignored. The context needs a running event loop and the
    main thread.
    """
    loop = asyncio.get_running_loop()
    heeded = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    heard: list[int] = []

    # Set by ``signal.signal``, not by the event loop: the last resort must work even if the loop hangs.
    def end(number: int, _: FrameType | None) -> None:
        if not heard:
            heard.append(number)
            signal.alarm(PATIENCE_S)
            loop.call_soon_threadsafe(app.end_for, number)

    def last_resort(*_: object) -> None:
        app.give_terminal_back()
        os._exit(SIGNALLED + heard[0] if heard else 1)

    # Under nohup a closed terminal sends no signal, and Textual would read the end of its input again and again.
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
            # A scheduler, or a terminal that closes, may send a second signal. It must not end this process before its
            # last lines are printed.
            signal.signal(number, signal.SIG_IGN if heard else handler)
        if heard:
            # The last resort stays active until Python has waited for all threads. After that its handler is gone, and
            # the alarm itself would kill this process: so the alarm is cancelled at exit.
            atexit.register(signal.alarm, 0)
        else:
            signal.signal(signal.SIGALRM, alarm)
        sys.stdout.flush()
