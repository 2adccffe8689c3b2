"""Has TensorFlow itself write down a pool that runs out, where the agent cannot see that in place."""

import os
from typing import Optional

_VARIABLE = "TF_BFC_MEMORY_DUMP"


def ask_for_dumps(folder: Optional[str], pid: int) -> None:
    """Have this process's pools written to *folder*, unless the user has TensorFlow write them elsewhere.

    The variable is set past ``os.environ``, where the script would see it. Programs that the script starts see it,
    unless they are Pythons with the hook. So it is set only where pools cannot be watched in place.
    """
    # A child inherits the variable from its parent, with the parent's process id.
    if folder and os.environ.get(_VARIABLE, folder).startswith(folder):
        os.putenv(_VARIABLE, f"{folder}/{pid}")
