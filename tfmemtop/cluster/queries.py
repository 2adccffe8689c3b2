"""The queries for Prometheus, in PromQL. Pure. No query depends on the number of hosts.

Each series of an answer has a label ``means``, which says what it is; the names are those of :class:`Rows`.
"""

import math
import re
from collections.abc import Sequence

from tfmemtop.findings.busy import FULL_SHARE

_CARD = "host,exported_host,uuid"
_RANK = "instance,run,rank,exported_rank"

SLOW_S = 60.0
"""Seconds between two queries for what changes slowly."""
REMEMBERED = "6h"
"""How far back the last figures of a target that is down are searched."""
MOST_DOWN = 100
"""The last figures of at most this many such targets are searched. For the others only the names are shown."""
STALE_S = 120
"""Figures are old from this age on, in seconds. A target that answers has newer ones: most have an interval of 60 s
or less."""
IDLE_SHARE = 0.15
IDLE_FOR = "2m"
RISE_AT_LEAST = 32 * 2**20
RISE_S, RISE_STEP_S = 1200, 120
STEADY = 0.97
"""When memory counts as rising: the lowest use in each ``RISE_STEP_S`` seconds must have risen by ``RISE_AT_LEAST``
bytes over ``RISE_S`` seconds, and nearly on a straight line: ``STEADY`` is the least correlation with time. This is
strict, because the exporters look for leaks themselves, with far more figures."""
PACE_S = 600
"""The pace is the mean over this many seconds. A validation, which each rank may begin at another time, is a small part
of that."""
STARTING_S = 300
"""For this many seconds a rank may import and build before its missing TensorFlow memory is shown as a problem."""


def quoted(text: str) -> str:
    """Return *text* as a string literal of PromQL."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{plain}"'


class Queries:
    """The queries for all jobs, or for one *job*."""

    def __init__(self, job: str | None = None) -> None:
        self._job = job

    def _of(self, name: str, form: str = "{}") -> str:
        """Return *form*, in which the metric *name* of the job stands for ``{}``."""
        if self._job is None:
            return form.format(f"tfmemtop_{name}")
        job = quoted(self._job)
        places = f"exported_job={job}", f'job={job},exported_job=""'
        return "(" + " or ".join(form.format(f"tfmemtop_{name}{{{place}}}") for place in places) + ")"

    def _card(self, name: str, form: str = "{}", labels: str = "") -> str:
        """Return the metric *name* once for each card: every rank on the host may report the same card."""
        return f"max by ({_CARD}{labels}) ({self._of(name, form)})"

    def fast(self) -> str:
        """Return the query for what changes at any time."""
        in_use = f"({self._of('in_use_high_bytes')} or {self._of('in_use_bytes')})"
        ended = f"({self._of('running')} == 0)"
        unread = f"{self._of('run_info')} unless on ({_RANK}) {in_use} unless on ({_RANK}) {ended}"
        return _joined(
            in_use=in_use,
            used=self._card("device_memory_used_bytes"),
            busy=self._card("device_utilization_ratio"),
            finding=self._of("finding"),
            ended=ended,
            unread=unread,
            down="up == 0",
        )

    def slow(self, down: Sequence[str] = ()) -> str:
        """Return the query for what changes slowly, and for the last figures of the instances *down*."""
        used, total = self._card("device_memory_used_bytes"), self._card("device_memory_total_bytes")
        before = self._card("device_memory_used_bytes", f"{{}} offset {IDLE_FOR}")
        busy = self._card("device_utilization_ratio", f"avg_over_time({{}}[{IDLE_FOR}])")
        full = f"{used} / {total} >= {FULL_SHARE} and {before} / {total} >= {FULL_SHARE}"
        lows = f"{self._of('in_use_bytes', f'min_over_time({{}}[{RISE_STEP_S}s])')}[{RISE_S}s:{RISE_STEP_S}s]"
        rise = f"deriv({lows}) * {RISE_S}"
        # This quotient is the coefficient of correlation with time.
        steady = f"{rise} / ({math.sqrt(12):.4f} * stddev_over_time({lows})) > {STEADY}"
        long_enough = self._of("in_use_bytes", f"{{}} offset {RISE_S}s")
        # A rank that counts no steps has a count of 0 at all times. This leaves it out.
        stepping = f"{self._of('steps_total', f'{{}} offset {PACE_S}s')} > 0"
        ages = " or ".join(
            f"max by (instance) (time() - timestamp({self._of(name)})) > {STALE_S}"
            for name in ("in_use_bytes", "device_memory_used_bytes")
        )
        last = {}
        if down:
            where = quoted("|".join(map(_literally, down[:MOST_DOWN])))
            for means, name in _LAST.items():
                last[means] = f"last_over_time(tfmemtop_{name}{{instance=~{where}}}[{REMEMBERED}])"
        return _joined(
            limit=self._of("limit_bytes"),
            total=total,
            info=self._card("device_info", labels=",index,name"),
            run=self._of("run_info"),
            starting=f"({self._of('run_start_time_seconds')} > time() - {STARTING_S})",
            old=ages,
            idle=f"({busy} < {IDLE_SHARE}) and ({full})",
            rising=f"deriv({lows}) and {rise} > {RISE_AT_LEAST} and {steady} and {long_enough}",
            pace=f"{self._of('steps_total', f'rate({{}}[{PACE_S}s])')} and {stepping}",
            **last,
        )


_LAST = {
    "was": "in_use_bytes",
    "was_run": "run_info",
    "was_limit": "limit_bytes",
    "was_total": "device_memory_total_bytes",
    "was_used": "device_memory_used_bytes",
    "was_info": "device_info",
}


def _literally(text: str) -> str:
    """Return a regular expression of RE2 that matches exactly *text*."""
    return re.sub(r"[\\.+*?()|\[\]{}^$]", r"\\\g<0>", text)


def _joined(**parts: str) -> str:
    """Return the query for all *parts*, with the name of the part in the label ``means`` of each of its series."""
    return " or ".join(f'label_replace({part}, "means", "{means}", "", "")' for means, part in parts.items())
