"""How long a test waits for something that has to happen, before it fails."""

import time
from collections.abc import Callable
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


def until(look: Callable[[], Any], every_s: float = 0.05) -> Any:
    """Call *look* every *every_s* seconds until its result is true. Return this result."""
    ends = time.monotonic() + PATIENCE_S
    while not (found := look()):
        assert time.monotonic() < ends
        time.sleep(every_s)
    return found
