"""The result of a check, and :func:`run_all`, which runs many at once. A check that hangs does not stop the others."""

import threading
import time
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any, NamedTuple


class State(str, Enum):
    """The state of a thing that a run needs."""

    OK = "ok"
    MISSING = "missing"
    UNKNOWN = "unknown"


class Fact(Enum):
    """What a check found. ``cli/checks/text.py`` has the text and the remedy. The comments name each fact's values."""

    GPUS_READ = auto()  # version, names: one for each GPU
    DRIVER_TROUBLE = auto()  # trouble
    NO_GPU_SHOWN = auto()
    NO_GPU = auto()

    SHARES_TOLD = auto()
    NO_PROCESS = auto()
    NO_GPU_TO_SHARE = auto()
    PIDS_DIFFER = auto()  # reason
    SHARES_MISSING = auto()  # reason, mig

    NO_COMMAND = auto()
    COMMAND_NOT_FOUND = auto()  # name
    NOT_EXECUTABLE = auto()  # name
    INTERPRETER_LOOP = auto()  # name
    NOT_PYTHON = auto()  # name
    RUN_BY_OTHER = auto()  # name, interpreter
    ENV_OPTION = auto()  # word
    ENV_EMPTY = auto()
    UV_COMMAND = auto()  # word
    CANNOT_START = auto()  # name, error
    NO_ANSWER = auto()  # name, seconds
    PYTHON_ENDED = auto()  # name, code, line

    HOOK_IN = auto()  # version, path
    PYTHON_TOO_OLD = auto()  # version, path
    HOOK_SHUT_OUT = auto()  # absence, flag
    HOOK_OUT = auto()  # version, path

    TENSORFLOW_FOUND = auto()  # version, folder
    TENSORFLOW_MISSING = auto()  # path, error

    POOLS = auto()  # direct, library; also install, if there is no compiler
    POOLS_WITHOUT_TENSORFLOW = auto()

    COMPILER = auto()  # version
    COMPILER_MISSING = auto()  # install

    SOCKETS = auto()  # folder
    SOCKETS_FAILED = auto()  # file, error

    MEMORY_WHOLE = auto()  # machine
    MEMORY_LIMITED = auto()  # owner, total, machine

    TERMINAL = auto()  # columns, rows, kind, colours
    NOT_A_TERMINAL = auto()
    TERMINAL_KIND = auto()  # kind
    TERMINAL_SMALL = auto()  # columns, rows, kind, least

    LOCALE_UTF8 = auto()  # name
    LOCALE_UNSET = auto()
    LOCALE_ASCII = auto()  # name

    CHECK_FAILED = auto()  # error
    CHECK_LATE = auto()  # seconds


class Library(Enum):
    """The state of the compiled library that reads the pools of one TensorFlow."""

    CACHED = auto()
    TO_BE_BUILT = auto()
    NO_FRAMEWORK = auto()
    NO_HEADERS = auto()
    NO_COMPILER = auto()


class Check(NamedTuple):
    """One thing that a run needs: its state, and the reason. ``values`` belong to the fact."""

    name: str
    state: State
    fact: Fact
    values: Mapping[str, Any] = {}


def ok(name: str, fact: Fact, /, **values: Any) -> Check:
    """Return a check that found what a run needs."""
    return Check(name, State.OK, fact, values)


def missing(name: str, fact: Fact, /, **values: Any) -> Check:
    """Return a check that found something missing."""
    return Check(name, State.MISSING, fact, values)


def unknown(name: str, fact: Fact, /, **values: Any) -> Check:
    """Return a check that could not find out."""
    return Check(name, State.UNKNOWN, fact, values)


def run_all(groups: dict[tuple[str, ...], Callable[[], list[Check]]], timeout_s: float) -> list[Check]:
    """Run all groups of checks at once, and return their results in the order of *groups*.

    Each key of *groups* has the names of the checks that its function returns. A check that raises an exception, or has
    no result within *timeout_s* seconds, is unknown.
    """
    found: dict[tuple[str, ...], list[Check]] = {}

    def run(names: tuple[str, ...], checks: Callable[[], list[Check]]) -> None:
        try:
            found[names] = checks()
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            found[names] = [unknown(name, Fact.CHECK_FAILED, error=why) for name in names]

    # Not a thread pool: at its end it waits for its threads, and a call to a driver may never return.
    threads = [threading.Thread(target=run, args=each, daemon=True) for each in groups.items()]
    for thread in threads:
        thread.start()
    give_up = time.monotonic() + timeout_s
    for thread in threads:
        thread.join(max(0.0, give_up - time.monotonic()))
    late = {names: [unknown(name, Fact.CHECK_LATE, seconds=timeout_s) for name in names] for names in groups}
    return [check for names in groups for check in found.get(names) or late[names]]
