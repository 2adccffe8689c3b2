"""What a search is to find out: of which script, under which settings, how far it has to get. Pure."""

import re
from typing import NamedTuple

import msgspec

from tfmemtop.fit.largest import Wanted, parse_wanted
from tfmemtop.fit.not_sought import NoSearch, NotSought
from tfmemtop.fit.search import Search, Tried
from tfmemtop.fit.watch import Goal, Watch
from tfmemtop.settings import Settings
from tfmemtop.suggested import Basis, SuggestedLimit

SECONDS_MOST, STEPS_MOST, TRIES_MOST = 86_400, 1_000_000_000, 50
SECONDS, TRIES = 30.0, 8
"""What is taken if nothing is said."""

_GOAL = re.compile(r"\s*(\d{1,12}(?:\.\d{1,6})?)\s*(s|secs?|seconds?|m|mins?|minutes?|h|hours?|steps?)\s*", re.I)
_TRIES = re.compile(r"\s*(\d{1,6})\s*(?:try|tries)\s*", re.I)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """*settings* are those of every try but for its limit, which is for each GPU or for the CPU pool.

    ``smallest`` and ``largest`` bound what is tried, ``ceiling`` is what the machine has; bytes, ``None`` if
    not given or not known. ``host_memory`` is what the CPU pool gets in a try without a limit. With ``wanted`` the
    largest value of a number in the command is sought instead, under the limit ``largest``.
    """

    command: list[str]
    settings: Settings
    on_gpu: bool
    host_memory: int
    goal: Goal = Goal(SECONDS)
    tries: int = TRIES
    smallest: int | None = None
    largest: int | None = None
    ceiling: int | None = None
    wanted: Wanted | None = None

    @property
    def kind(self) -> str:
        """Of the devices whose memory is limited: ``GPU`` or ``CPU``."""
        return "GPU" if self.on_gpu else "CPU"

    def search(self) -> Search:
        """A search that has tried nothing yet."""
        return Search(tries=self.tries, smallest=self.smallest, largest=self.largest, ceiling=self.ceiling)

    def watch(self, first: Tried | None, *, traces: bool | None = None) -> Watch:
        """What follows one try; *first* is how the first one went.

        If it *traces*, all allocations are recorded, to be replayed: by default those of the first try.
        """
        traces = first is None if traces is None else traces
        growth = not self.on_gpu or self.settings.growth != "off"
        return Watch(self.kind, self.goal, first, growth=growth, traces=traces)

    def suggested(self, search: Search) -> SuggestedLimit | None:
        """The limit to set after *search*; ``None`` if it has found none."""
        advice, limit = (search.advice, search.limit) if search.tried else (None, None)
        if advice is None or limit is None:
            return None
        growth = self.settings.growth if self.on_gpu else None
        return SuggestedLimit(advice, Basis.FIT, limit, on_gpu=self.on_gpu, growth=growth)

    def settings_of(self, limit: int | None) -> Settings:
        """A try's settings; *limit* is in bytes."""
        if self.on_gpu:
            return msgspec.structs.replace(self.settings, memory_limit=limit)
        # Without its own pool the CPU has no allocator that could tell its peak.
        return msgspec.structs.replace(self.settings, memory_limit=None, cpu_pool=limit or self.host_memory)


def check(settings: Settings) -> None:
    """Whether a limit has something to act on under *settings*.

    Raises:
        NotSought: it has not.
    """
    if settings.allocator == "cuda_malloc_async":
        raise NotSought(NoSearch.ALLOCATOR)


def make_plan(
    command: list[str],
    settings: Settings,
    *,
    has_gpus: bool,
    host_memory: int,
    goal: Goal,
    tries: int,
    smallest: int | None = None,
    largest: int | None = None,
    ceiling: int | None = None,
    wanted: Wanted | None = None,
) -> Plan:
    """The plan for a machine, with growth on unless *settings* say otherwise.

    Raises:
        NotSought: as :func:`check`.
    """
    check(settings)
    on_gpu = has_gpus and settings.gpus != ()
    if on_gpu and settings.growth is None:
        # Without it the pool is always as large as the limit, and the first try would take the whole GPU.
        settings = msgspec.structs.replace(settings, growth="on")
    return Plan(
        command=command,
        settings=settings,
        on_gpu=on_gpu,
        host_memory=host_memory,
        goal=goal,
        tries=tries,
        smallest=smallest,
        largest=largest,
        ceiling=ceiling,
        wanted=wanted,
    )


class Sought(NamedTuple):
    """What the user wants to be found: how far a try has to get, in how many tries, and of which number the largest."""

    goal: Goal
    tries: int
    wanted: Wanted | None = None


def parse_sought(text: str) -> Sought:
    """What is sought, of ``30 s, 8 tries`` or ``batch=1..4096, 5 steps``; empty means the usual.

    Raises:
        NotSought: as :func:`parse_goal`, or no range is meant.
    """
    parts = text.split(",")
    ranges = [part.strip() for part in parts if "=" in part]
    goal, tries = parse_goal(",".join(part for part in parts if "=" not in part))
    if not ranges:
        return Sought(goal, tries)
    wanted = parse_wanted(ranges[0])
    if wanted is None or len(ranges) > 1:
        raise NotSought(NoSearch.NO_RANGE, ", ".join(ranges))
    return Sought(goal, tries, wanted)


def parse_goal(text: str) -> tuple[Goal, int]:
    """How far and in how many tries, of ``30 s``, ``200 steps`` or ``5 min, 6 tries``; empty means the usual.

    Raises:
        NotSought: it means neither, or more than can be asked for.
    """
    goal, tries = Goal(SECONDS), TRIES
    for part in filter(str.strip, text.split(",")):
        if match := _TRIES.fullmatch(part):
            tries = int(match[1])
            if not 1 <= tries <= TRIES_MOST:
                raise NotSought(NoSearch.TRIES, part.strip())
        elif match := _GOAL.fullmatch(part):
            goal = _goal(float(match[1]), match[2].lower(), part.strip())
        else:
            raise NotSought(NoSearch.NO_GOAL, part.strip())
    return goal, tries


def _goal(number: float, unit: str, text: str) -> Goal:
    if unit.startswith("st"):
        if not (number.is_integer() and 1 <= number <= STEPS_MOST):
            raise NotSought(NoSearch.STEPS, text)
        return Goal(steps=int(number))
    seconds = number * {"s": 1, "m": 60, "h": 3600}[unit[0]]
    if not 1 <= seconds <= SECONDS_MOST:
        raise NotSought(NoSearch.SECONDS, text)
    return Goal(seconds)
