"""Decodes the JSON of Prometheus's answers. Values beyond the bounds are left out."""

import math
from typing import Annotated

import msgspec

from tfmemtop.cluster.client import NoAnswer, Trouble

MOST_SERIES = 1_000_000
LONGEST_LABEL = 128
HIGHEST = 2.0**63 - 1024


class Labels(msgspec.Struct, frozen=True, gc=False):
    """The labels that identify the source of a figure; a label that the figure lacks is empty. All others are ignored.

    If the target has a label of the same name, Prometheus renames the exporter's own label to ``exported_…``.
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
    tensorflow: str = ""  # TensorFlow's version, once it is loaded
    index: str = ""
    model: str = msgspec.field(default="", name="name")
    means: str = ""  # what the figure means; our own query adds this label


class Series(msgspec.Struct, frozen=True, gc=False):
    """One figure: its labels, and its time and value."""

    metric: Labels
    value: tuple[float, str]

    @property
    def number(self) -> float | None:
        """The value; ``None`` if it is not finite, or larger than ``HIGHEST``."""
        return number(self.value[1])

    @property
    def size(self) -> int | None:
        """The value as bytes; ``None`` if it is negative or not a number."""
        value = number(self.value[1])
        return int(value) if value is not None and value >= 0 else None


class RangeSeries(msgspec.Struct, frozen=True):
    """One figure over time."""

    metric: Labels
    values: Annotated[list[tuple[float, str]], msgspec.Meta(max_length=20_000)]


class _Vector(msgspec.Struct, frozen=True):
    result_type: str = msgspec.field(name="resultType")
    result: Annotated[list[Series], msgspec.Meta(max_length=MOST_SERIES)]


class _Matrix(msgspec.Struct, frozen=True):
    result_type: str = msgspec.field(name="resultType")
    result: Annotated[list[RangeSeries], msgspec.Meta(max_length=10_000)]


class _Instant(msgspec.Struct, frozen=True):
    status: str
    data: _Vector


class _Range(msgspec.Struct, frozen=True):
    status: str
    data: _Matrix


_instants = msgspec.json.Decoder(_Instant)
_ranges = msgspec.json.Decoder(_Range)


def series(body: bytes) -> list[Series]:
    """Return the series in the answer to a query.

    Raises:
        NoAnswer: *body* is not an answer of Prometheus.
    """
    try:
        return _instants.decode(body).data.result
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise NoAnswer(Trouble.NOT_PROMETHEUS) from error


def courses(body: bytes) -> list[RangeSeries]:
    """Return the series in the answer to a query over a time range.

    Raises:
        NoAnswer: *body* is not an answer of Prometheus.
    """
    try:
        return _ranges.decode(body).data.result
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise NoAnswer(Trouble.NOT_PROMETHEUS) from error


def number(text: str) -> float | None:
    """Return a value as a number; ``None`` if it is not finite, or larger than ``HIGHEST``."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and abs(value) <= HIGHEST else None


def label(text: str) -> str:
    """Return a label, cut to :data:`LONGEST_LABEL` characters."""
    return text if len(text) <= LONGEST_LABEL else text[:LONGEST_LABEL]
