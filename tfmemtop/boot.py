"""Starts a Python of ours in isolation: ``python -I -S boot.py MODULE [ARGUMENT…]``.

The user's ``PYTHON*`` variables, ``PYTHONPATH``, working folder and ``sitecustomize`` are meant for the user's program.
In our own processes a foreign ``psutil``, a ``signal.py`` or a module that prints could do anything. So each of our
processes starts with ``-I -S``, and this file then adds the folders of the installed packages, and nothing else.

It runs by its path, before ``tfmemtop`` can be imported. It imports only what costs next to nothing.
"""

import os
import signal
import sys
from importlib.machinery import PathFinder

IGNORED = "TFMEMTOP_IGNORED"
"""The variable in which the shell script ``tfmemtop`` hands over what was ignored before Python started."""

KEEPER = "pty-keeper"
"""What the process that holds the script's terminal calls itself, in ``/proc/PID/cmdline`` too."""

_NEEDED = ("msgspec", "pynvml", "pyte", "textual")
_PYTHON_IGNORES = {signal.SIGPIPE, signal.SIGXFSZ}  # always, from its start

SCREENS = "tfmemtop.cli"
"""The module of the command, which may show a screen."""


def end_picture() -> None:
    """Leave the terminal as it was before the first picture; nothing where there is none. Called before one prints."""


ignored: "list[int]" = []
"""Signals that this process's parent had it ignore. A program that is started for the user is to ignore them too."""
blocked: "list[int]" = []
"""Signals that this process's parent had blocked in it; likewise."""


def command(module: str, *arguments: str) -> "list[str]":
    """The command line of a Python of ours that runs ``main(arguments)`` of *module*."""
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), module, *arguments]


def start() -> None:
    """The installed command: replace this process by one that does the same in isolation."""
    os.execve(sys.executable, command(SCREENS, *sys.argv[1:]), given_environment())


def given_environment() -> "dict[bytes, bytes]":
    """The environment as this process got it. Python itself may have set ``LC_CTYPE`` since (PEP 538)."""
    try:
        with open("/proc/self/environ", "rb") as file:
            entries = file.read().split(b"\0")
    except OSError:
        return dict(os.environb)
    return dict(entry.split(b"=", 1) for entry in entries if b"=" in entry)


def main() -> None:
    """Find the packages, put right what Python's start changed, and run the module."""
    try:
        _restore_environment()
        if sys.argv[1] == SCREENS:
            _begin_picture()
        code = _run()
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT  # so early that nothing has begun
    finally:
        end_picture()
    sys.exit(code)


def _run() -> int:
    _find_packages()
    _note_signals()
    _name_process()
    module = sys.argv[1]
    sys.argv = sys.argv[1:]
    from importlib import import_module

    code: int = import_module(module).main(sys.argv[1:])
    return code


def _begin_picture() -> None:
    """Have the GPUs drawn by another process, if the command is to show them; this one goes on meanwhile."""
    global end_picture
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path.append(ours)
    try:
        from tfmemtop.first.begin import begin, end
    finally:
        sys.path.remove(ours)
    begin(sys.argv[2:])
    end_picture = end


def _find_packages() -> None:
    import site

    # Modules of the user's, like those of -m usercustomize; a distribution's own too may print.
    site.execsitecustomize = site.execusercustomize = lambda: None
    site.main()
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if ours not in sys.path:
        # A checkout, or the user's own packages, which -I leaves out.
        site.addsitedir(ours) if ours.endswith("-packages") else sys.path.append(ours)
    if any(PathFinder.find_spec(name) is None for name in _NEEDED):
        # Installed to where only PYTHONPATH leads. What else lies there comes last.
        sys.path += [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(part)]


def _restore_environment() -> None:
    given = given_environment()
    for name in [name for name in os.environb if name not in given]:
        del os.environb[name]
    if b"LC_CTYPE" in given and os.environb[b"LC_CTYPE"] != given[b"LC_CTYPE"]:
        os.environb[b"LC_CTYPE"] = given[b"LC_CTYPE"]


def _note_signals() -> None:
    """Remember what was inherited, and make sure that the ends of children are told here."""
    mask = int(os.environ.pop(IGNORED, "0") or "0", 16)
    for number in sorted(signal.valid_signals()):
        noted = bool(mask >> (number - 1) & 1)
        if noted if number in _PYTHON_IGNORES else signal.getsignal(number) == signal.SIG_IGN:
            ignored.append(int(number))
    blocked.extend(sorted(map(int, signal.pthread_sigmask(signal.SIG_SETMASK, ()))))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _name_process() -> None:
    """Show as ``tfmemtop`` rather than ``python`` where processes are listed by name."""
    try:
        with open("/proc/self/comm", "w") as file:
            file.write("tfmemtop")
    except OSError:
        return  # the name is for the eye only


if __name__ == "__main__":
    sys.modules["tfmemtop.boot"] = sys.modules["__main__"]
    main()
