"""Entry point of the engine's process. It forks into a keeper and an engine.

It does so before it imports the modules that only the engine needs. It is started by
:func:`tfmemtop.engine.process.launch.start`. Its one argument is the number of the file descriptor to which answers are
written.
"""

import os

from tfmemtop.engine.process.keeper import leave_behind
from tfmemtop.engine.process.pseudo_terminal import PseudoTerminal, inherited
from tfmemtop.uncollected import uncollected

_USAGE = 2


def main(arguments: list[str]) -> int:
    """Run the keeper in this process and the engine in a child; neither returns. Return 2 if a user started this."""
    if len(arguments) != 1 or os.getsid(0) != os.getpid():
        # Only tfmemtop starts this, and always in a process session of its own.
        return _USAGE
    answers = int(arguments[0])
    os.set_inheritable(answers, False)
    passed_on = inherited()
    terminal = PseudoTerminal(columns=80, rows=24)
    keeper = leave_behind(terminal, [*passed_on, answers])

    with uncollected():
        from tfmemtop.engine.main import run

    code = run(terminal, keeper, passed_on, answers)
    # os._exit() does not wait for threads, one of which may hang in a driver.
    os._exit(code)
