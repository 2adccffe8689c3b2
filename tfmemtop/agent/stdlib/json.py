"""A stand-in for ``json``: ``dumps`` and ``loads``."""

from _json import encode_basestring_ascii, make_encoder, make_scanner
from typing import Any


class _Choices:
    """The default options of ``json``'s decoder."""

    strict = True
    memo: "dict[str, str]" = {}  # noqa: RUF012
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float


def _refuse(value: Any) -> Any:
    raise TypeError(type(value).__name__)


_encode: Any = make_encoder(None, _refuse, encode_basestring_ascii, None, ": ", ", ", False, False, True)
_scan: Any = make_scanner(_Choices())  # type: ignore[arg-type]


def dumps(value: Any) -> str:
    """Return *value* as JSON.

    Raises:
        TypeError: a part of *value* has no form in JSON.
    """
    return "".join(_encode(value, 0))


def loads(text: "str | bytes") -> Any:
    """Return the value of the JSON *text*, which is in UTF-8 if it is bytes.

    Raises:
        ValueError: *text* is not JSON.
    """
    text = (text if isinstance(text, str) else text.decode()).strip()
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        raise ValueError(text[:100]) from None
    if end != len(text):
        raise ValueError(text[end : end + 100])
    return value
