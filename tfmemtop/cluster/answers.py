"""Reads the JSON of Prometheus's answers. What lies beyond the bounds is left out."""

import math
from typing import Annotated

import msgspec

from tfmemtop.cluster.client import NoAnswer, Trouble

MOST_SERIES = 1_000_000
LONGEST_LABEL = 128
HIGHEST = 2.0**63 - 1024


class Labels(msgspec.Struct, frozen=True, gc=False):
    """The labels that tell whose a figure is; empty if it has none. All others are passed over.

    Where a target has a label of the same name, Prometheus calls the exporter's own one ``exported_…``.
    """

    name: str = msgspec.field(default="", name="__name__")
    instance: str = ""
    host: str = ""
    exported_host: str = ""
    uuid: str = ""
    device: str = ""
    run: str = ""
    job: str = ""
    exported_job: str = ""
    rank: str = ""
    exported_rank: str = ""
    user: str = ""
    key: str = ""
    severity: str = ""
    tensorflow: str = ""  # its version, once it is loaded
    index: str = ""
    model: str = msgspec.field(default="", name="name")
    means: str = ""  # what a query of ours says that the figure is


class Series(msgspec.Struct, frozen=True, gc=False):
    """One figure: its labels, and its time and value."""

    metric: Labels
    value: tuple[float, str]

    @property
    def number(self) -> float | None:
        """The value, if it is a finite one that we can count."""
        return number(self.value[1])

    @property
    def size(self) -> int | None:
        """The value as bytes."""
        value = number(self.value[1])
        return int(value) if value is not None and value >= 0 else None


class Course(msgspec.Struct, frozen=True):
    """One figure over time."""

    metric: Labels
    values: Annotated[list[tuple[float, str]], msgspec.Meta(max_length=20_000)]


class _Vector(msgspec.Struct, frozen=True):
    result_type: str = msgspec.field(name="resultType")
    result: Annotated[list[Series], msgspec.Meta(max_length=MOST_SERIES)]


class _Matrix(msgspec.Struct, frozen=True):
    result_type: str = msgspec.field(name="resultType")
    result: Annotated[list[Course], msgspec.Meta(max_length=10_000)]


class _Instant(msgspec.Struct, frozen=True):
    status: str
    data: _Vector


class _Range(msgspec.Struct, frozen=True):
    status: str
    data: _Matrix


_instants = msgspec.json.Decoder(_Instant)
_ranges = msgspec.json.Decoder(_Range)


def series(body: bytes) -> list[Series]:
    """The series in the answer to a query.

    Raises:
        NoAnswer: it is none of Prometheus's.
    """
    try:
        return _instants.decode(body).data.result
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise NoAnswer(Trouble.NOT_PROMETHEUS) from error


def courses(body: bytes) -> list[Course]:
    """The series in the answer to a query over time.

    Raises:
        NoAnswer: it is none of Prometheus's.
    """
    try:
        return _ranges.decode(body).data.result
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise NoAnswer(Trouble.NOT_PROMETHEUS) from error


def number(text: str) -> float | None:
    """A value; ``None`` if it is not finite, or beyond all that we can count."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and abs(value) <= HIGHEST else None


def label(text: str) -> str:
    """A label, not longer than anybody reads."""
    return text if len(text) <= LONGEST_LABEL else text[:LONGEST_LABEL]
