"""Waits until modules of TensorFlow are completely imported, and then calls the action for them once."""

import sys
from typing import TYPE_CHECKING, Any, Callable, Optional

from . import real_threads

if TYPE_CHECKING:
    from types import ModuleType


class Awaited:
    """The names of modules to wait for, and the *action* to call with the modules once all are complete."""

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
        """Return the modules, but only to the first thread that calls this once all are complete; else ``None``."""
        modules = [module for module in map(_complete, self._names) if module is not None]
        return modules if len(modules) == len(self._names) and self._once.acquire(False) else None


class ImportWatch:
    """A finder that finds nothing: at each import it checks whether the awaited modules are complete.

    So no module is loaded in another way than without it; with a wrapped loader it would be. There are enough
    imports: TensorFlow imports hundreds of modules after those that are awaited.
    """

    def __init__(self, agent: Any, guarded: Callable[..., Any], first: Awaited, then: "list[Awaited]") -> None:
        """The watch belongs to *agent*; *guarded* is the method of its messenger.

        The modules of *then* are awaited once *first* is done.
        """
        self.agent = agent
        self._guarded = guarded
        self._first = first
        self._then = then

    def look(self) -> bool:
        """Call the actions of the modules that are complete by now; return whether others are still awaited."""
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


def _complete(name: str) -> "Optional[ModuleType]":
    module = sys.modules.get(name)
    if module is None or getattr(getattr(module, "__spec__", None), "_initializing", False):
        return None
    return module
