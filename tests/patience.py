"""How long a test waits for something that has to happen, before it fails."""

from typing import Any

import pexpect

# In seconds. Every wait normally takes a fraction of this. A slow machine with other things to do must not fail a test.
PATIENCE_S = 240


def end(child: "pexpect.spawn[Any]") -> None:
    """End *child*, and close its terminal. pexpect itself waits only a tenth of a second after SIGKILL."""
    try:
        child.close(force=True)
    except pexpect.ExceptionPexpect:
        child.wait()
        child.close()
