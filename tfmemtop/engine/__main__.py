"""``python -m tfmemtop.engine``: parts into a keeper and an engine before it imports what only the engine needs."""

import os
import sys

from tfmemtop.engine.daemon import inherited
from tfmemtop.engine.keeper import leave_behind
from tfmemtop.engine.terminal import PseudoTerminal

if __name__ == "__main__":
    passed_on = inherited()
    if os.getsid(0) != os.getpid():
        sys.exit("this is started by tfmemtop itself, in a session of its own")
    terminal = PseudoTerminal(columns=80, rows=24)
    keeper = leave_behind(terminal, passed_on)

    from tfmemtop.engine.main import main

    code = main(terminal, keeper, passed_on)
    sys.stdout.flush()
    # Without waiting for a thread that may hang in a driver.
    os._exit(code)
