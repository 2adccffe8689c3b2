"""``dumps`` and ``loads``."""

from _json import encode_basestring_ascii, make_encoder, make_scanner
from typing import Any


class _Choices:
    """How ``json`` reads, if it is not told otherwise."""

    strict = True
    memo: "dict[str, str]" = {}  # noqa: RUF012
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float


def _refuse(value: Any) -> Any:
    raise TypeError(type(value).__name__)


_encode: Any = make_encoder(None, _refuse, encode_basestring_ascii, None, ": ", ", ", False, False, True)
_scan: Any = make_scanner(_Choices())  # type: ignore[arg-type]


def dumps(value: Any) -> str:
    """*value* as JSON.

    Raises:
        TypeError: there is something in it that JSON does not know.
    """
    return "".join(_encode(value, 0))


def loads(text: "str | bytes") -> Any:
    """The value that the JSON *text* stands for; as bytes, in UTF-8.

    Raises:
        ValueError: it is not JSON.
    """
    text = (text if isinstance(text, str) else text.decode()).strip()
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        raise ValueError(text[:100]) from None
    if end != len(text):
        raise ValueError(text[end : end + 100])
    return value
