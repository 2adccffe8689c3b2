"""Families in Prometheus's text format, version 0.0.4, which Prometheus and node_exporter read. Pure."""

from collections.abc import Iterable, Iterator

from tfmemtop.metrics.families import PREFIX, Family
from tfmemtop.words.metrics import HELP

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_IN_LABEL = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


def text_of(found: Iterable[Family]) -> bytes:
    """Return *found* as text: of each family what it means, its kind, and a line for each sample."""
    return "".join(f"{line}\n" for family in found for line in _lines(family)).encode(errors="replace")


def _lines(family: Family) -> Iterator[str]:
    name = PREFIX + family.name
    yield f"# HELP {name} {HELP[family.name]}"
    yield f"# TYPE {name} {family.kind.value}"
    for labels, value in family.samples:
        given = ",".join(f'{label}="{labels[label].translate(_IN_LABEL)}"' for label in family.labels)
        yield f"{name}{{{given}}} {value}"
