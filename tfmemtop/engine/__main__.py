"""Entry of the engine's process: it forks into a keeper and an engine, before it imports what only the engine needs.

Started by :func:`tfmemtop.engine.start.start`, with the number of the descriptor that answers go to.
"""

import os

from tfmemtop.engine.process.daemon import inherited
from tfmemtop.engine.process.keeper import leave_behind
from tfmemtop.engine.process.terminal import PseudoTerminal
from tfmemtop.uncollected import uncollected

_USAGE = 2


def main(arguments: list[str]) -> int:
    """Run the keeper in this process and the engine in a child. Neither returns. 2 if it was started by hand."""
    if len(arguments) != 1 or os.getsid(0) != os.getpid():
        # Nobody but tfmemtop starts this, in a session of its own.
        return _USAGE
    answers = int(arguments[0])
    os.set_inheritable(answers, False)
    passed_on = inherited()
    terminal = PseudoTerminal(columns=80, rows=24)
    keeper = leave_behind(terminal, [*passed_on, answers])

    with uncollected():
        from tfmemtop.engine.main import run

    code = run(terminal, keeper, passed_on, answers)
    # Without waiting for a thread that may hang in a driver.
    os._exit(code)
