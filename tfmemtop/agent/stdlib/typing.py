"""A stand-in for ``typing``: the names that annotations need, and named tuples."""

from _operator import itemgetter

TYPE_CHECKING = False


class _Anything:
    """A stand-in for all types in annotations, which are not read here."""

    def __getitem__(self, parameters: object) -> "_Anything":
        return self


Any = Callable = Optional = _Anything()


class _Fields(type):
    _fields: "tuple[str, ...]"
    _defaults: "dict[str, object]"

    def __new__(cls, name: str, bases: "tuple[type, ...]", namespace: "dict[str, object]") -> "_Fields":
        namespace.setdefault("__slots__", ())
        made = type.__new__(cls, name, bases, namespace)
        made._fields = tuple(getattr(made, "__annotations__", ()))
        made._defaults = {field: namespace[field] for field in made._fields if field in namespace}
        for place, field in enumerate(made._fields):
            setattr(made, field, property(itemgetter(place)))
        return made


class NamedTuple(tuple, metaclass=_Fields):  # type: ignore[type-arg]
    """As ``typing.NamedTuple``, as far as the agent uses it."""

    def __new__(cls, *values: object, **named: object) -> "NamedTuple":
        known = {**cls._defaults, **named}
        # A tuple of a list: Python counts one of a generator as a container that is never freed (see collector.py).
        values += tuple([known.pop(field) for field in cls._fields[len(values) :]])
        return tuple.__new__(cls, values)

    def _asdict(self) -> "dict[str, object]":
        return dict(zip(type(self)._fields, self))

    def _replace(self, **changes: object) -> "NamedTuple":
        return type(self)(**{**self._asdict(), **changes})
