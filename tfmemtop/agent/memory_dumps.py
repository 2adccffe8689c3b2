"""Has TensorFlow itself write down a pool that runs out, where that is not seen in place."""

import os
from typing import Optional

_VARIABLE = "TF_BFC_MEMORY_DUMP"


def ask_for_dumps(folder: Optional[str], pid: int) -> None:
    """Have this process's pools written to *folder*, unless the user has TensorFlow write them elsewhere.

    The variable is set past ``os.environ``, where the script would see it. Programs that it starts see it, unless
    they are Pythons that the hook is in. So it is set only where pools cannot be watched in place.
    """
    # A child has the variable from its parent, with the parent's number.
    if folder and os.environ.get(_VARIABLE, folder).startswith(folder):
        os.putenv(_VARIABLE, f"{folder}/{pid}")
