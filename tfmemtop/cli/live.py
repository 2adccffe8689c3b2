"""Watch and control the GPU memory of a TensorFlow program while it runs.

usage: tfmemtop [OPTIONS] -- COMMAND…
usage: tfmemtop [OPTIONS]
usage: tfmemtop --once [--json] [--loop SECONDS]
usage: tfmemtop COMMAND [OPTIONS]
example: tfmemtop --growth on -- python train.py

Without a command after --, watch the GPUs and the processes on them.

SIZE is a number with K, M, G or T (powers of 1024; 4G, 3500M), or a share of the memory such as 50%.
Without a GPU, the memory limit and the allocator apply to TensorFlow's memory pool for the CPU.

exit code: the program's own; 128+n if signal n ended it; 2 if the command line is not valid;
126 if the program cannot be started; 127 if it does not exist. More: tfmemtop help exit-codes
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tfmemtop.cli import Refusal
from tfmemtop.cli.arguments import NO_RECORD, RECORD, ScreenArguments, WatchedRunArguments, seconds
from tfmemtop.cli.launch import (
    NO_ROOM,
    file_for,
    has_room,
    is_task,
    make_launch,
    run_alone,
    script_terminal_size,
    with_sizes,
)
from tfmemtop.cli.output import say, say_trouble
from tfmemtop.cli.parser import FOR_ALERTS, FOR_RUN, Trailing, option, switch
from tfmemtop.engine.process.launch import Launch, Launched, start
from tfmemtop.engine.stream.kept_sessions import kept_recordings, starts_after
from tfmemtop.exit_codes import SIGNALLED
from tfmemtop.placement import waits_for_script
from tfmemtop.ui import ScreenOutcome, UiOptions
from tfmemtop.uncollected import uncollected

if TYPE_CHECKING:
    from tfmemtop.cli.signals import GroupListener
    from tfmemtop.engine.stream.folders import SessionInfo


_WITHOUT_SCREEN = "without a screen"


class LiveArguments(ScreenArguments, WatchedRunArguments):
    """The options of a run, of a session that only watches, or of readings without a screen (``once``)."""

    trailing = Trailing.ALLOWED
    record: Path | None = RECORD
    no_record: bool = NO_RECORD
    once: bool = switch(_WITHOUT_SCREEN, "print one reading of the GPUs, their processes and TensorFlow's pools")
    json: bool = switch(_WITHOUT_SCREEN, "print the reading as JSON")
    loop: float | None = option(
        _WITHOUT_SCREEN,
        "print a reading every SECONDS, until Ctrl-C; in JSON each reading begins with a line of type session",
        metavar="SECONDS",
        type=seconds(0.1, 86400),
    )

    def check(self) -> None:
        if self.once and self.command:
            raise Refusal("--once takes no command after --")
        for typed in self.typed():
            flag, of_once = typed.flag, typed.group == _WITHOUT_SCREEN
            if self.once and not of_once:
                raise Refusal(f"{flag} has no effect with --once")
            if of_once and not self.once:
                raise Refusal(f"{flag} needs --once: use tfmemtop --once {flag}")
            if not self.command and typed.group in (FOR_RUN, FOR_ALERTS) and typed.name != "interval":
                raise Refusal(f"{flag} needs a command; for example: tfmemtop {flag} … -- python train.py")


ARGUMENTS = LiveArguments

_ENGINE_GOES_S, _LOOK_S = 1.0, 0.02
"""Seconds that the command waits for the engine to end, and seconds between two checks.

The engine may not end, because another screen may still be connected to it.
"""


def run(arguments: LiveArguments) -> int:
    """Start the engine, show the screen, and return the exit code with which the user left it. Or print readings.

    Raises:
        Refusal: the command cannot be started, or there is no screen to show it on.
    """
    if arguments.once:
        from tfmemtop.cli import once

        return once.run(arguments.json, arguments.loop)
    if arguments.command and not has_room():
        say(f"the command runs without tfmemtop: {NO_ROOM}")
        return run_alone(arguments.command, os.environ)
    size = script_terminal_size()
    arguments.record, remarks = file_for(arguments.record)
    launch = make_launch(arguments, list(arguments.command), with_sizes(arguments, arguments.command), *size)
    if launch.ends_with_screen:
        code = _watch(launch, arguments)
    else:
        code = show(lambda: start(launch), arguments, starts=bool(launch.argv))
    for line in remarks:
        say(line)
    return code


def _watch(launch: Launch, arguments: ScreenArguments) -> int:
    """Show the screen of a session that ends with its screen. So the engine runs in this process."""
    # The engine is imported before the screen, because two imports at once would only take turns. The engine's first
    # figures come while the screen is imported.
    with uncollected():
        from tfmemtop.engine.main import EngineInside

    engine = EngineInside(launch)
    return show(engine.start, arguments, end=engine.end)


def show(
    answer: Callable[[], Launched],
    arguments: ScreenArguments,
    *,
    outside: bool = False,
    hint: str = "",
    starts: bool = False,
    end: Callable[[], None] | None = None,
) -> int:
    """Show the screen of the session that *answer* starts or finds; return its exit code.

    *outside*: the session reads a process that tfmemtop did not start. *hint*: what the screen tells the user first.
    *starts*: the session starts a script; if this command is the task of a Slurm step or leads a container, the script
    cannot run longer than this command. *end*: the function that ends the session when its screen has ended.

    Raises:
        Refusal: the session could not be started, or its engine has gone.
    """
    step = None
    if starts and is_task():
        from tfmemtop.cli.signals import listen_to_step  # imported only if needed, because it takes a while to load

        step = listen_to_step()  # before there are threads
    launched: Launched | None = None
    noted: list[int] = []  # signals; while modules are imported, an exception may not arrive
    with ThreadPoolExecutor(1) as other, _on_signals(lambda number, _: noted.append(number)):
        coming = other.submit(answer)  # the script starts while the screen is imported
        try:
            with uncollected():
                import tfmemtop.ui.main  # noqa: F401  no other import takes as long
            launched = coming.result()
            if launched.error is not None:
                raise Refusal(launched.error, launched.exit_code)
            options = replace(arguments.ui_options(dict(os.environ)), outside=outside, successor=successor, hint=hint)
            with _on_signals(_end):  # the screen has handlers of its own while it is shown
                if noted:
                    raise SystemExit(SIGNALLED + noted[0])
                outcome = _screen(launched, options, step)
                while outcome.follow and (after := _going(outcome.follow)):
                    launched = after
                    outcome = _screen(launched, options, None)
        except Refusal:
            raise
        except BaseException as error:
            # For any error: the script may run by now, and the user must be told.
            launched = launched or coming.result()
            if launched.error is None and end is None:
                _say_it_goes_on(launched)
            if isinstance(error, OSError):
                raise _engine_gone(launched.id, error) from error
            raise
        finally:
            if end is not None:
                end()
    say_trouble(outcome.trouble)
    for line in outcome.summary:
        say(line)
    if outcome.left_running and step is not None:
        return _stay(launched, outcome.exit_code, step)
    if outcome.left_running and end is None:
        _say_it_goes_on(launched)
    elif outcome.summary:
        _say_what_is_left(launched)
    return outcome.exit_code


def _engine_gone(session: str, error: OSError) -> Refusal:
    return Refusal(f"the engine of {session} cannot be reached: {error.strerror or error}", 1)


def _screen(launched: Launched, options: UiOptions, step: "GroupListener | None") -> ScreenOutcome:
    """Show the screen of *launched* until it ends. Meanwhile, signals to *step* are passed on to the script."""
    from tfmemtop.ui.main import run_live

    if step is None:
        return run_live(Path(launched.socket), options)
    from tfmemtop.cli.signals import signals_passed_on

    with signals_passed_on(launched.socket, step):
        return run_live(Path(launched.socket), options)


def _stay(launched: Launched, screens: int, step: "GroupListener") -> int:
    """Wait for the script and return its exit code. *screens* is the exit code of the screen, which has ended."""
    from tfmemtop.cli.signals import wait_for_script

    say(waits_for_script(launched.id))
    try:
        code = wait_for_script(launched.socket, screens - SIGNALLED if screens > SIGNALLED else None, step)
    except OSError as error:
        raise _engine_gone(launched.id, error) from error
    _say_what_is_left(launched)
    return code


def successor(session: str) -> str | None:
    """Return the name of the session that is the newest start of the same kernel after *session*.

    Return ``None`` if no such session goes on.
    """
    later = starts_after(session)
    ours = reversed(_sessions()) if later else ()
    return next((one.id for one in ours if one.id in later), None)


def _going(name: str) -> Launched | None:
    session = next((one for one in _sessions() if one.id == name), None)
    return None if session is None else Launched(id=session.id, socket=session.socket)


def _sessions() -> "list[SessionInfo]":
    from tfmemtop.cli.sessions import running_sessions  # imported only if needed, because it takes a while to load

    return running_sessions()


def _say_what_is_left(launched: Launched) -> None:
    """Wait until the engine has completed the output and the recording and ended, and print where they are."""
    folder, until = Path(launched.socket).parent, time.monotonic() + _ENGINE_GOES_S
    while folder.exists() and time.monotonic() < until:
        time.sleep(_LOOK_S)
    if launched.output_path and _has_something(Path(launched.output_path)):
        say(f"output in {launched.output_path}")
    if (recording := kept_recordings().get(launched.id)) and _has_something(recording):
        say(f"recorded in {recording}")
        say(f"tfmemtop why {launched.id} explains it")


def _has_something(path: Path) -> bool:
    """Return whether *path* is a file with at least one byte. On a full disk there is an empty file, or none."""
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


@contextmanager
def _on_signals(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """In this context, *handler* handles the signals that end programs, but for those that are ignored."""
    ends = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    before = {n: signal.signal(n, handler) for n in ends if signal.getsignal(n) is not signal.SIG_IGN}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


def _end(number: int, _: FrameType | None) -> None:
    raise SystemExit(SIGNALLED + number)


def _say_it_goes_on(launched: Launched) -> None:
    """Report that the session's script goes on."""
    output = f"output in {launched.output_path}; " if launched.output_path else ""
    say(f"still running as {launched.id}; {output}tfmemtop attach {launched.id} brings the screen back")
