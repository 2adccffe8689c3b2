"""Waits until modules of TensorFlow are complete, and then does once what was to be done."""

import sys
from typing import TYPE_CHECKING, Any, Callable, Optional

from . import real_threads

if TYPE_CHECKING:
    from types import ModuleType


class Awaited:
    """Modules to wait for by name, and the *action* to call with them once all are complete."""

    def __init__(self, doing: str, action: Callable[..., object], *names: str) -> None:
        self.doing = doing
        self.action = action
        self._names = names
        self._once = real_threads.allocate_lock()

    @property
    def done(self) -> bool:
        """Whether a thread has taken the modules."""
        return self._once.locked()

    def take(self) -> "Optional[list[ModuleType]]":
        """The modules, for the one thread that comes first; ``None`` for others, and before they are complete."""
        modules = [module for module in map(_complete, self._names) if module is not None]
        return modules if len(modules) == len(self._names) and self._once.acquire(False) else None


class ImportWatch:
    """A finder that finds nothing: at each import it looks whether the awaited modules are there.

    No module is loaded differently for it, as a wrapped loader would do. TensorFlow imports hundreds
    more after those that are awaited.
    """

    def __init__(self, guarded: Callable[..., Any], first: Awaited, then: "list[Awaited]") -> None:
        """*guarded* is the messenger's. What comes *then* is not looked for before the *first* is done."""
        self.agent: Any = None  # whose watch it is
        self._guarded = guarded
        self._first = first
        self._then = then

    def look(self) -> bool:
        """Take what is complete by now; whether there is more to wait for."""
        if not self._first.done:
            self._look(self._first)
        if self._first.done:
            for awaited in self._then:
                self._look(awaited)
            self._then = [awaited for awaited in self._then if not awaited.done]
        return bool(self._then) or not self._first.done

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if not self._first.done:
            self._look(self._first)
        elif self._then:
            for awaited in self._then:
                self._look(awaited)
            self._then = [awaited for awaited in self._then if not awaited.done]
            if not self._then:
                return self._leave(name, path, target)
        return None

    def _look(self, awaited: Awaited) -> None:
        modules = awaited.take()
        if modules is not None:
            self._guarded(awaited.doing, awaited.action, *modules)

    def _leave(self, name: str, path: Any, target: Any) -> Any:
        """Leave ``sys.meta_path``, answering for the next finder, which the search under way will skip.

        Another thread's search would skip one too: then this finder stays, and does nothing.
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


def _complete(name: str) -> "Optional[ModuleType]":
    module = sys.modules.get(name)
    if module is None or getattr(getattr(module, "__spec__", None), "_initializing", False):
        return None
    return module
