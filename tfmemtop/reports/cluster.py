"""The rows of a cluster, as a table and as JSON."""

from collections.abc import Sequence

from msgspec import json, to_builtins

from tfmemtop.cluster.judge import Judged, Wrong
from tfmemtop.cluster.text import gpu_name, in_short
from tfmemtop.safe import safe
from tfmemtop.units import UNKNOWN, aligned, format_short

_HEADINGS = ["HOST", "GPU", "JOB", "RANK", "USER", "USED", "TOTAL", "TF-USE", "LIMIT", "UTIL", "WRONG"]
_LEFT = {0, 4, 10}


def table(rows: Sequence[Judged]) -> list[str]:
    """Return a line with the headings, and one for each row."""
    return aligned([_HEADINGS, *map(_cells, rows)], _LEFT)


def _cells(judged: Judged) -> list[str]:
    row = judged.row
    busy = UNKNOWN if row.busy is None else f"{row.busy * 100:.0f}%"
    names = [row.host, row.gpu or gpu_name(row), row.job, row.rank, row.user]
    sizes = [format_short(size) for size in (row.used, row.total, row.in_use, row.limit)]
    return [*(safe(name) or UNKNOWN for name in names), *sizes, busy, in_short(judged)]


def as_json(judged: Judged) -> bytes:
    """Return one row as a JSON object. Sizes are in bytes; values that are not known are null."""
    row = judged.row
    return json.encode(
        {
            **{name: getattr(row, name) for name in ("host", "instance", "gpu", "uuid", "device", "model")},
            **{name: getattr(row, name) or None for name in ("run", "job", "rank", "user")},
            **{name: getattr(row, name) for name in ("in_use", "limit", "used", "total", "busy")},
            "silence": row.silence.value if row.silence else None,
            "findings": [{"key": key, "severity": severity} for key, severity in row.findings],
            "wrong": [_wrong(wrong) for wrong in judged.wrongs],
        }
    )


def _wrong(wrong: Wrong) -> dict[str, object]:
    known = {name: value for name, value in to_builtins(wrong).items() if value not in (None, "", 0.0)}
    return {**known, "kind": wrong.kind.name.lower()}
