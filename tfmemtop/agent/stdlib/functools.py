"""A stand-in for ``functools``: ``wraps``."""

from typing import Any, Callable

_SHOWN = ("__module__", "__name__", "__qualname__", "__doc__", "__type_params__")
_ANNOTATED = ("__annotate__", "__annotations__")
"""From Python 3.14 on the first is copied: a read of the second would run it."""


def wraps(original: Any) -> "Callable[[Any], Any]":
    """Return a decorator that makes a function look like *original* to the script."""

    def look_alike(wrapper: Any) -> Any:
        annotated = next((name for name in _ANNOTATED if hasattr(original, name)), "__annotations__")
        for name in (*_SHOWN, annotated):
            if hasattr(original, name):
                setattr(wrapper, name, getattr(original, name))
        wrapper.__dict__.update(getattr(original, "__dict__", {}))
        wrapper.__wrapped__ = original
        return wrapper

    return look_alike
