"""The rule for host memory that keeps rising while TensorFlow's pools do not."""

from collections.abc import Iterator

from tfmemtop.events.census import HostArray
from tfmemtop.findings.cause import Key
from tfmemtop.findings.finding import Finding, Said, Severity, joined
from tfmemtop.findings.names import holder_name
from tfmemtop.findings.remedy import Action, Remedy
from tfmemtop.findings.rising import LEAST_WINDOWS, Rise, rise_until
from tfmemtop.findings.rules import rule
from tfmemtop.findings.rules.retracing import Retraced, retracing
from tfmemtop.findings.run_devices import hooked_of_run, superseded
from tfmemtop.findings.scene import MANY
from tfmemtop.state import State
from tfmemtop.state.model import Hooked
from tfmemtop.units import MIB, counted, format_bytes, rough_time, spoken

LEAST_S = 120.0
"""Seconds that a rise must last: caches and buffers of a healthy training fill within its first minutes."""
LEAST_RETRACING_S = 30.0
"""Less is enough while a function is traced over and over: its graphs are known to stay in memory."""

FAST = 1024 * MIB
"""Bytes. So large a rise is told after :data:`LEAST_RETRACING_S` too, if it is most of what the process holds."""

AT_LEAST = 32 * MIB
SHARE = 0.02
"""The least rise, as a share of what the process held before."""

POOL_SHARE = 0.25
"""Pools that rose by more than this share of the rise explain it: the CPU's pool is host memory too."""

SOON_S = 24 * 3600.0

_TRACE = (
    "import tracemalloc; tracemalloc.start()  # at the beginning",
    'print(*tracemalloc.take_snapshot().statistics("lineno")[:9], sep="\\n")  # later',
)


class HostGrowth(Finding, frozen=True):
    """The host memory of process ``pid`` rose steadily, and its pools did not; by ``each`` bytes in a step, or a call
    (``None`` where steps are few).

    ``left_s`` are the seconds until the host's memory is full at this pace, ``None`` where that is not known.
    ``retraced`` is a function that was traced over and over meanwhile. ``generators`` is how many data sets were made
    of generators, 0 if few. ``pools`` are the bytes by which its pools rose, ``None`` if none was read. ``several`` if
    there are other processes. ``kept`` are the arrays in one list or dict that make up most of the rise. ``early`` if
    a healthy training may still be filling caches and buffers.
    """

    key = Key.HOST_GROWTH

    pid: int
    rise: Rise
    each: int | None
    unit: str
    left_s: float | None
    retraced: Retraced | None
    pools: int | None
    ended: bool
    generators: int = 0
    several: bool = False
    kept: HostArray | None = None
    early: bool = False

    @property
    def severity(self) -> Severity:
        soon = self.left_s is not None and self.left_s < SOON_S
        doubled = self.kept is not None and self.rise.size >= self.rise.first
        serious = self.retraced or self.generators or self.rise.size >= FAST or doubled
        return Severity.WARNING if serious or (soon and not self.ended) else Severity.INFO

    @property
    def holder(self) -> str:
        return self.kept.name if self.kept else "Dataset.from_generator" if self.generators else ""

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        if self.kept is not None:
            return (Action.BOUND_ARRAYS,)
        if self.generators:
            return (Action.ONE_DATASET,)
        return self.retraced.remedies if self.retraced else (Action.TRACE_HOST, Action.SHOW_PROCESS)

    @property
    def cause(self) -> str:
        """Why it rises, as the beginning of a sentence; empty if that is not known."""
        if self.kept is not None:
            arrays = f"{self.kept.shape[0]:,} NumPy arrays, {format_bytes(self.kept.bytes)} when tfmemtop last looked"
            return f"{holder_name(self.kept.name)} keeps {arrays}"
        if self.generators:
            return (
                f"Dataset.from_generator was called {self.generators} times, and each call keeps its generator's data"
            )
        if self.retraced is not None:
            times = counted(self.retraced.traces_so_far, "time")
            return f"{self.retraced.name} was traced {times}, and each graph stays in memory"
        return ""

    @property
    def said(self) -> Said:
        rise, cause = self.rise, self.cause
        who = f"Process {self.pid}: host" if self.several else "Host"
        # What rises with each data set that is made says nothing of a step.
        each = f", {format_bytes(self.each)} a {self.unit.rstrip('s')}" if self.each and not self.generators else ""
        rose = f"by {format_bytes(rise.size)} in {spoken(rise.span_s)}{each}"
        keeps = f"{who} memory {'kept' if self.ended else 'keeps'} rising"
        headline = f"{keeps}, {rose}: {cause}."
        if not cause:
            beside = "" if self.pools is None else ", outside TensorFlow's pools"
            headline = f"{keeps}, {rose}{beside}. Its holder is not known."
        fills = "At that pace it would have filled" if self.ended else "At this pace it fills"
        grew = f"grew by {format_bytes(self.pools)}" if self.pools else "did not grow"
        pools = "" if self.pools is None else f"Its pools {grew}."
        left = "" if self.left_s is None else f"{fills} the host in {rough_time(self.left_s)}."
        return Said(
            headline,
            f"It went from {format_bytes(rise.first)} to {format_bytes(rise.last)}, and was not given back. Host "
            "memory rises if a tf.function is traced again and again, if XLA compiles anew for each new shape, if data "
            "or results are kept in Python, and while a dataset's cache fills.",
            code=() if cause else _TRACE,
            figures=joined(pools, left),
        )


@rule(160)
def host_growth(state: State) -> Iterator[HostGrowth]:
    """Find processes whose host memory rises step after step while their pools stay as they are."""
    yield from (one for one in host_rises(state) if one.kept or not one.early)


def host_rises(state: State) -> Iterator[HostGrowth]:
    """Yield the rises of host memory that are told, and those that may be once it is known what keeps them."""
    for pid, hooked in hooked_of_run(state):
        if superseded(state, hooked) or not _may_have_risen(hooked):
            continue
        rise = rise_until([hooked.host.windows])
        if rise is None or rise.size < max(AT_LEAST, rise.first * SHARE):
            continue
        steps, unit = hooked.steps.made(rise.start, rise.end)
        retraced = next((each for each in retracing(state) if each.pid == pid), None)
        fast = rise.size >= max(FAST, rise.first / 2)
        late = [window.low for window in hooked.host.windows if window.start >= rise.end - rise.span_s / 4]
        young = retraced is None and rise.span_s < LEAST_S
        if young and late and (late[-1] - late[0]) * 8 < rise.size:
            continue  # what is loaded at the start has come to an end
        pools = _pools_rose(hooked, rise)
        if pools > rise.size * POOL_SHARE:
            continue
        yield HostGrowth(
            pid,
            rise,
            each=int(rise.size / steps) if steps >= MANY else None,
            unit=unit,
            left_s=_left_s(state, rise),
            retraced=retraced,
            pools=pools if hooked.trends else None,
            ended=hooked.ended,
            generators=_generators(hooked),
            kept=_kept(hooked, rise),
            early=rise.span_s < LEAST_RETRACING_S or (not fast and (young or steps < MANY)),
            several=len(hooked_of_run(state)) > 1,
        )


def _generators(hooked: Hooked) -> int:
    """Return how many data sets of generators the script has made, if these are many."""
    told = hooked.census.buffers if hooked.census else []
    made = sum(one.elements or 0 for one in told if one.kind == "generator")
    return made if made >= MANY else 0


def _kept(hooked: Hooked, rise: Rise) -> HostArray | None:
    """Return the list or dict whose arrays made up most of the *rise* as it was found; ``None`` if none was."""
    look = hooked.look
    lows = [window.low for window in hooked.host.windows if look and rise.start <= window.start <= look.t]
    if look is None or not lows:
        return None
    risen = max(AT_LEAST, min(rise.size, lows[-1] - rise.first))
    large = (one for one in look.arrays if not one.dtype and one.bytes >= risen / 2)
    return max(large, key=lambda one: one.bytes, default=None)


def _may_have_risen(hooked: Hooked) -> bool:
    """Return whether a rise is possible, by a test that is quick enough for each frame.

    A rise that goes on has at least a third of its size in the later half of the time.
    """
    windows = hooked.host.windows
    if len(windows) < LEAST_WINDOWS:
        return False
    return windows[-1].low - windows[len(windows) // 2].low >= AT_LEAST / 3


def _pools_rose(hooked: Hooked, rise: Rise) -> int:
    """Return by how many bytes the peak of the process's pools rose in the same time."""
    rose = 0
    for trend in hooked.trends.values():
        before = [window.high for window in trend.whole.windows if window.start <= rise.start]
        after = [window.high for window in trend.whole.windows if window.start > rise.start]
        rose += max(0, max(after, default=0) - max(before, default=0))
    return rose


def _left_s(state: State, rise: Rise) -> float | None:
    if state.session is None or state.host_used is None:
        return None
    free = state.session.host_memory - state.host_used
    return free / rise.rate if free > 0 else None
