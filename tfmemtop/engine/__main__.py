"""The engine's process: parts into a keeper and an engine before it imports what only the engine needs.

Started by :func:`tfmemtop.engine.launch.start`, with the number of the descriptor that answers go to.
"""

import os

from tfmemtop.engine.daemon import inherited
from tfmemtop.engine.keeper import leave_behind
from tfmemtop.engine.terminal import PseudoTerminal


def main(arguments: list[str]) -> int:
    """Be a keeper and an engine; returns in neither."""
    if len(arguments) != 1 or os.getsid(0) != os.getpid():
        print("this is started by tfmemtop itself, in a session of its own")
        return 2
    answers = int(arguments[0])
    os.set_inheritable(answers, False)
    passed_on = inherited()
    terminal = PseudoTerminal(columns=80, rows=24)
    keeper = leave_behind(terminal, [*passed_on, answers])

    from tfmemtop.engine.main import run

    code = run(terminal, keeper, passed_on, answers)
    # Without waiting for a thread that may hang in a driver.
    os._exit(code)
