"""The queries for Prometheus, in PromQL. Pure. No query depends on the number of hosts."""

import math
import re
from collections.abc import Collection, Sequence
from enum import Enum

from tfmemtop.findings.busy import FULL_SHARE

CARD = "host,exported_host,uuid"

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
REMEMBERED = ("2m", "1s"), ("6h", "1m")
"""How far back the last figures of a target that is down are searched, and the resolution of the time that is found."""
MOST_DOWN = 100
"""The last figures of at most this many such targets are searched. For the others only the names are shown."""


class Lane(Enum):
    """A query. Its value is the age in seconds that its answer may have, and a letter that makes the value unique."""

    FIGURES = "0a"  # how much is in use
    STATE = "0b"  # the GPUs, findings, runs that have ended, targets that are down
    FIXED = "60c"  # limits, sizes of cards, users
    SILENT = "30d"  # the last figures of targets that are down, and the targets whose figures are old
    TRENDS = "60e"  # pools that rise, GPUs that are full and idle, the pace of steps

    @property
    def every_s(self) -> float:
        return float(self.value[:-1])


def quoted(text: str) -> str:
    """Return *text* as a string literal of PromQL."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{plain}"'


class Queries:
    """The queries for all jobs, or for one *job*."""

    def __init__(self, job: str | None = None) -> None:
        self._job = job

    def of(self, lane: Lane, down: Collection[str] = ()) -> str:
        """Return the query for *lane*; *down* are the instances of targets that are down."""
        if lane is Lane.SILENT:
            return self._silent(list(down)[:MOST_DOWN])
        return {
            Lane.FIGURES: self._figures,
            Lane.STATE: self._state,
            Lane.FIXED: self._fixed,
            Lane.TRENDS: self._trends,
        }[lane]()

    def _select(self, *names: str, span: str = "") -> str:
        """Return a selector of the metrics *names* for the job. With a *span* there must be only one name."""
        what = f"__name__={quoted(_full(names[0]))}"
        if len(names) > 1:
            what = f'__name__=~"{"|".join(map(_full, names))}"'
        if self._job is None:
            return f"{{{what}}}{span}"
        job = quoted(self._job)
        return f'({{{what},exported_job={job}}}{span} or {{{what},job={job},exported_job=""}}{span})'

    def _over(self, function: str, name: str, span: str) -> str:
        """Return *function* of the metric over a *span* of time, such as ``[5m] offset 5m``."""
        if self._job is None:
            return f"{function}({_full(name)}{span})"
        job = quoted(self._job)
        both = f"{_full(name)}{{exported_job={job}}}", f'{_full(name)}{{job={job},exported_job=""}}'
        return "(" + " or ".join(f"{function}({one}{span})" for one in both) + ")"

    def _cards(self, *names: str) -> str:
        """Return a query for figures of cards, one per card: every rank on the host may report the same card."""
        return f"max by (__name__,{CARD}) ({self._select(*names)})"

    def _figures(self) -> str:
        return self._select("in_use_high_bytes")  # only this, so that the first query is answered fast

    def _fixed(self) -> str:
        info = f"max by (__name__,{CARD},index,name) ({self._select('device_info')})"
        total = self._cards("device_memory_total_bytes")
        # Most ranks started long ago; their start times are not needed.
        starting = f"({self._select('run_start_time_seconds')} > time() - {STARTING_S})"
        return f"{self._select('limit_bytes', 'run_info')} or {total} or {info} or {starting}"

    def _state(self) -> str:
        ended = f"({self._select('running')} == 0)"
        # For pools whose highest value is not reported.
        in_use = f"({self._select('in_use_bytes')} unless {self._select('in_use_high_bytes')})"
        cards = self._cards("device_memory_used_bytes", "device_utilization_ratio")
        return f"{self._select('finding')} or {ended} or (up == 0) or {cards} or {in_use}"

    def _silent(self, down: Sequence[str]) -> str:
        ages = [
            f"max by (instance) (time() - timestamp({self._select(name)})) > {STALE_S}"
            for name in ("in_use_bytes", "device_memory_used_bytes")
        ]
        file = f'max by (instance) (time() - node_textfile_mtime_seconds{{file=~".*tfmemtop.*"}}) > {STALE_S}'
        parts = [*((age, "old") for age in ages), (file, "old")]
        if down:
            longest = REMEMBERED[-1][0]
            where = f"{{instance=~{quoted('|'.join(map(_literally, down)))}}}"
            for name, card in (("in_use_bytes", ""), ("device_memory_used_bytes", "_card")):
                figure = f"{_full(name)}{where}"
                times = (f"max_over_time(timestamp({figure})[{span}:{every}])" for span, every in REMEMBERED)
                parts.append((" or ".join(times), f"was{card}"))
                parts.append((f"last_over_time({figure}[{longest}])", f"had{card}"))
            for name, means in (
                ("device_memory_total_bytes", "had_total"),
                ("device_info", "had_info"),
                ("run_info", "had_user"),
            ):
                parts.append((f"last_over_time({_full(name)}{where}[{longest}])", means))
        return " or ".join(_meaning(part, means) for part, means in parts)

    def _trends(self) -> str:
        used, total = (f"max by ({CARD}) ({self._select(name)})" for name in _FULLNESS)
        before = f"max by ({CARD}) ({self._over('', 'device_memory_used_bytes', f' offset {IDLE_FOR}')})"
        busy = f"max by ({CARD}) ({self._over('avg_over_time', 'device_utilization_ratio', f'[{IDLE_FOR}]')})"
        full = f"{used} / {total} >= {FULL_SHARE} and {before} / {total} >= {FULL_SHARE}"
        idle = f"({busy} < {IDLE_SHARE}) and ({full})"
        lows = f"{self._over('min_over_time', 'in_use_bytes', f'[{RISE_STEP_S}s]')}[{RISE_S}s:{RISE_STEP_S}s]"
        rise = f"deriv({lows}) * {RISE_S}"
        # This quotient is the coefficient of correlation with time.
        steady = f"{rise} / ({math.sqrt(12):.4f} * stddev_over_time({lows})) > {STEADY}"
        long_enough = self._over("", "in_use_bytes", f" offset {RISE_S}s")
        rising = f"deriv({lows}) and {rise} > {RISE_AT_LEAST} and {steady} and {long_enough}"
        # A rank that counts no steps has a count of 0 at all times. This leaves it out.
        stepping = f"{self._over('', 'steps_total', f' offset {PACE_S}s')} > 0"
        pace = f"{self._over('rate', 'steps_total', f'[{PACE_S}s]')} and {stepping}"
        return f"{_meaning(idle, 'idle')} or {_meaning(rising, 'rising')} or {_meaning(pace, 'pace')}"


_FULLNESS = ("device_memory_used_bytes", "device_memory_total_bytes")


def _literally(text: str) -> str:
    """Return a regular expression of RE2 that matches exactly *text*."""
    return re.sub(r"[\\.+*?()|\[\]{}^$]", r"\\\g<0>", text)


def _full(name: str) -> str:
    return f"tfmemtop_{name}"


def _meaning(query: str, means: str) -> str:
    """Return *query* with the label ``means`` added to each of its series."""
    return f'label_replace({query}, "means", "{means}", "", "")'


def of_gpu(host: str, uuid: str, instance: str, span: str = "") -> str:
    """Return a query for all figures of one GPU; with an empty *uuid*, of the pools of *instance* that are on no GPU.

    With a *span*, each figure is the highest in it.
    """
    where = f"uuid={quoted(uuid)}" if uuid else f'uuid="",instance={quoted(instance)}'
    wheres = [f"{where},host={quoted(host)}", f"{where},host!={quoted(host)},exported_host={quoted(host)}"]
    parts = []
    for name in OF_ONE:
        for place in wheres:
            selected = f"{_full(name)}{{{place}}}"
            parts.append(_meaning(f"max_over_time({selected}{span})" if span else selected, name))
    return " or ".join(parts)


OF_ONE = (
    *("in_use_bytes", "in_use_high_bytes", "pool_bytes", "peak_bytes", "limit_bytes", "process_total_bytes"),
    *("device_memory_used_bytes", "device_memory_free_bytes", "device_memory_total_bytes"),
    *("device_memory_reserved_bytes", "device_utilization_ratio", "device_memory_bandwidth_ratio"),
    *("device_power_watts", "device_temperature_celsius", "steps_total", "out_of_memory_total"),
)
"""The metrics that :func:`of_gpu` reads."""


COUNTED_S = 120


def interval(host: str, uuid: str) -> str:
    """Return a query for the number of figures that came from a GPU in the last :data:`COUNTED_S` seconds."""
    where = f"uuid={quoted(uuid)}"
    names = "device_memory_used_bytes", "in_use_bytes"
    return " or ".join(f"max(count_over_time({_full(name)}{{{where}}}[{COUNTED_S}s]))" for name in names)
