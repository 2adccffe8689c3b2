"""Reads the environment's variables as they are now."""

import os
from typing import Any, Optional

_variables: Any = os.environ._data  # type: ignore[attr-defined]  # of bytes


def variable(name: str) -> Optional[str]:
    """Return the variable *name*; ``None`` if it is not set.

    The methods of ``os.environ`` are not called. They call built-in functions, which the script may have replaced.
    """
    value = _variables.get(name.encode())
    return None if value is None else value.decode(errors="surrogateescape")
