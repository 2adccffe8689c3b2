"""The cells of a notebook, which IPython compiles as if they were files: ``/tmp/ipykernel_81/2738.py``.

IPython keeps the number of each such file's cell, the one in ``In [7]``. Events name a cell as IPython itself names it
where no debugger needs a file: ``<ipython-input-7-2738>``.
"""

import sys
from typing import Any

_MODULE, _CLASS = "IPython.core.interactiveshell", "InteractiveShell"
_SUFFIX = ".py"


def told(file: str) -> str:
    """Return the name of *file* for events: the cell's name if the file is a cell, else *file* itself."""
    if "ipykernel" not in file:
        return file
    # Attributes are read from __dict__: a property would run code of IPython or of the script.
    shell = _part(_part(_part(sys.modules.get(_MODULE), _CLASS), "_instance"), "compile")
    numbers = _part(shell, "_filename_map")
    number = numbers.get(file) if type(numbers) is dict else None
    if type(number) is not int:
        return file
    stem = file.rpartition("/")[2]
    stem = stem[: -len(_SUFFIX)] if stem.endswith(_SUFFIX) else stem
    return f"<ipython-input-{number}-{stem}>"


def _part(whole: Any, name: str) -> Any:
    parts = getattr(whole, "__dict__", None)
    return None if parts is None else parts.get(name)
