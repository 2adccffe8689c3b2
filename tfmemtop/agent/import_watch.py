"""Waits until modules of TensorFlow are completely imported, and then calls the action for them once."""

import sys
from typing import Any, Callable


class ImportWatch:
    """A finder that finds nothing: at each import it checks whether the awaited modules are complete.

    So no module is loaded in another way than without it; with a wrapped loader it would be. There are enough
    imports: TensorFlow imports hundreds of modules after those that are awaited.
    """

    def __init__(self, guarded: Callable[..., Any], awaited: "dict[str, tuple[str, Callable[..., object]]]") -> None:
        """*guarded* is the messenger's method.

        *awaited* has for each module a word for it and the action, which is called with the module.
        """
        self._guarded = guarded
        self._awaited = awaited

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Call the actions of the modules that are complete by now, and find nothing."""
        for awaited in list(self._awaited):
            module = sys.modules.get(awaited)
            if module is None or getattr(getattr(module, "__spec__", None), "_initializing", False):
                continue
            found = self._awaited.pop(awaited, None)  # another thread may be first
            if found is not None:
                word, action = found
                self._guarded(f"listen:{word}", action, module)
