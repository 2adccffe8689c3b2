"""Waits until modules of TensorFlow are completely imported, and then calls the action for them once."""

import sys
from typing import Any, Callable

from . import real_threads


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

    def look(self) -> bool:
        """Call the actions of the modules that are complete by now; return whether others are still awaited."""
        for name in list(self._awaited):
            module = sys.modules.get(name)
            if module is None or getattr(getattr(module, "__spec__", None), "_initializing", False):
                continue
            found = self._awaited.pop(name, None)  # another thread may be first
            if found is not None:
                word, action = found
                self._guarded(f"listen:{word}", action, module)
        return bool(self._awaited)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return None if not self._awaited or self.look() else self._leave(name, path, target)

    def _leave(self, name: str, path: Any, target: Any) -> Any:
        """Leave ``sys.meta_path``, and return the answer of the next finder, which the present search will skip.

        The search of another thread would skip a finder, too. So while there are other threads, this finder stays, and
        does nothing.
        """
        finders = sys.meta_path
        if not real_threads.alone() or self not in finders:
            return None
        place = finders.index(self)
        following = getattr(finders[place + 1], "find_spec", None) if place + 1 < len(finders) else None
        if following is None:
            return None
        del finders[place]
        return following(name, path, target)
