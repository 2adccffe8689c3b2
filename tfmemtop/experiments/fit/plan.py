"""The plan of a search: the command, its settings, how far each try has to get, and what is searched. Pure."""

import re
from enum import Enum
from typing import NamedTuple

import msgspec

from tfmemtop.experiments.fit.largest import Wanted, parse_wanted
from tfmemtop.experiments.fit.search import Search, Tried
from tfmemtop.experiments.fit.watch import Goal, TryWatch
from tfmemtop.settings import Settings
from tfmemtop.suggested import Basis, SuggestedLimit


class NoSearch(Enum):
    """What is wrong with the request. Where the comment has "detail", the detail is the text that was given."""

    ALLOCATOR = "allocator"  # a limit has no effect on cuda_malloc_async
    NO_PLACE = "no_place"  # the command has no place for the value; detail: its name
    NO_LIMIT = "no_limit"  # the value should fit under the limit of the CPU's pool, and that has none
    NO_RANGE = "no_range"  # detail
    TRIES = "tries"  # zero, or too many; detail
    STEPS = "steps"  # zero, too many, or not a whole number; detail
    SECONDS = "seconds"  # too short or too long; detail
    NO_GOAL = "no_goal"  # neither a goal nor a number of tries; detail


class ImpossibleSearch(ValueError):
    """The search cannot be made, for the reason *why*."""

    def __init__(self, why: NoSearch, detail: str = "") -> None:
        super().__init__(why, detail)
        self.why = why
        self.detail = detail


SECONDS_MOST, STEPS_MOST, TRIES_MOST = 86_400, 1_000_000_000, 50
SECONDS, TRIES = 30.0, 8
"""The defaults: seconds that a try has to run, and the number of tries."""

_GOAL = re.compile(r"\s*(\d{1,12}(?:\.\d{1,6})?)\s*(s|secs?|seconds?|m|mins?|minutes?|h|hours?|steps?)\s*", re.I)
_TRIES = re.compile(r"\s*(\d{1,6})\s*(?:try|tries)\s*", re.I)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a search for a limit, or for a value.

    ``settings`` are the settings of every try, except for its limit. The limit is for each GPU, or for the CPU pool.
    ``smallest`` and ``largest`` bound the limits that are tried, ``ceiling`` is what the machine has; bytes, ``None``
    if not given or not known. ``host_memory`` is the size of the CPU pool in a try without a limit, in bytes. With
    ``wanted`` the search is for the largest value of a number in the command instead, under the limit ``largest``.
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
        """The kind of the devices whose memory is limited: ``GPU`` or ``CPU``."""
        return "GPU" if self.on_gpu else "CPU"

    def search(self) -> Search:
        """Return a new search, without any tries."""
        return Search(tries=self.tries, smallest=self.smallest, largest=self.largest, ceiling=self.ceiling)

    def watch(self, first: Tried | None, *, traces: bool | None = None) -> TryWatch:
        """Return the watch for one try; *first* is the result of the first try, ``None`` for the first try itself.

        *traces*: all allocations of the try are recorded, to be replayed. By default those of the first try are.
        """
        traces = first is None if traces is None else traces
        growth = not self.on_gpu or self.settings.growth != "off"
        return TryWatch(self.kind, self.goal, first, growth=growth, traces=traces)

    def suggested(self, search: Search) -> SuggestedLimit | None:
        """Return the limit to set after *search*; ``None`` if it has found none."""
        advice, limit = (search.advice, search.limit) if search.tried else (None, None)
        if advice is None or limit is None:
            return None
        growth = self.settings.growth if self.on_gpu else None
        return SuggestedLimit(advice, Basis.FIT, limit, on_gpu=self.on_gpu, growth=growth)

    def settings_of(self, limit: int | None) -> Settings:
        """Return the settings of a try under *limit* bytes (``None``: without a limit)."""
        if self.on_gpu:
            return msgspec.structs.replace(self.settings, memory_limit=limit)
        # Without a pool of its own the CPU has no allocator that reports a peak.
        return msgspec.structs.replace(self.settings, memory_limit=None, cpu_pool=limit or self.host_memory)


def check(settings: Settings) -> None:
    """Check that a limit has an effect under *settings*.

    Raises:
        ImpossibleSearch: the allocator is ``cuda_malloc_async``, on which a limit has no effect.
    """
    if settings.allocator == "cuda_malloc_async":
        raise ImpossibleSearch(NoSearch.ALLOCATOR)


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
    """Make the plan for a machine. Growth is on, unless *settings* turn it off.

    Raises:
        ImpossibleSearch: the allocator is ``cuda_malloc_async``, on which a limit has no effect.
    """
    check(settings)
    on_gpu = has_gpus and settings.gpus != ()
    if on_gpu and settings.growth is None:
        # Without growth the pool is always as large as the limit, and the first try would take the whole GPU.
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
    """What the user requests: how far a try has to get, how many tries, and the number to maximise, if any."""

    goal: Goal
    tries: int
    wanted: Wanted | None = None


def parse_sought(text: str) -> Sought:
    """Parse a request such as ``30 s, 8 tries`` or ``batch=1..4096, 5 steps``. An empty text means the defaults.

    Raises:
        ImpossibleSearch: a part is not valid (see :func:`parse_goal`), or a range is not valid, or there are several.
    """
    parts = text.split(",")
    ranges = [part.strip() for part in parts if "=" in part]
    goal, tries = parse_goal(",".join(part for part in parts if "=" not in part))
    if not ranges:
        return Sought(goal, tries)
    wanted = parse_wanted(ranges[0])
    if wanted is None or len(ranges) > 1:
        raise ImpossibleSearch(NoSearch.NO_RANGE, ", ".join(ranges))
    return Sought(goal, tries, wanted)


def parse_goal(text: str) -> tuple[Goal, int]:
    """Parse a goal and a number of tries: ``30 s``, ``200 steps`` or ``5 min, 6 tries``. Empty means the defaults.

    Raises:
        ImpossibleSearch: a part is neither a goal nor a number of tries, or its number is too small or too large.
    """
    goal, tries = Goal(SECONDS), TRIES
    for part in filter(str.strip, text.split(",")):
        if match := _TRIES.fullmatch(part):
            tries = int(match[1])
            if not 1 <= tries <= TRIES_MOST:
                raise ImpossibleSearch(NoSearch.TRIES, part.strip())
        elif match := _GOAL.fullmatch(part):
            goal = _goal(float(match[1]), match[2].lower(), part.strip())
        else:
            raise ImpossibleSearch(NoSearch.NO_GOAL, part.strip())
    return goal, tries


def _goal(number: float, unit: str, text: str) -> Goal:
    if unit.startswith("st"):
        if not (number.is_integer() and 1 <= number <= STEPS_MOST):
            raise ImpossibleSearch(NoSearch.STEPS, text)
        return Goal(steps=int(number))
    seconds = number * {"s": 1, "m": 60, "h": 3600}[unit[0]]
    if not 1 <= seconds <= SECONDS_MOST:
        raise ImpossibleSearch(NoSearch.SECONDS, text)
    return Goal(seconds)


_TEXTS = {
    NoSearch.ALLOCATOR: "fit needs the allocator bfc: a limit has no effect on cuda_malloc_async",
    NoSearch.NO_PLACE: "the command has no {{{}}}: press [E] and put it in place of the value",
    NoSearch.NO_LIMIT: "the search needs a memory limit, and the next run has none: [L] sets one",
    NoSearch.NO_RANGE: "{}: give one name and a range of whole numbers, such as batch=1..4096",
    NoSearch.TRIES: f"{{}}: give 1 to {TRIES_MOST} tries",
    NoSearch.STEPS: "{}: give a whole number of steps from 1 on",
    NoSearch.SECONDS: "{}: give 1 second to 24 hours",
    NoSearch.NO_GOAL: "{!r} is not understood; give for example: 30 s, 8 tries; or: 200 steps",
}


def impossible_search_text(error: ImpossibleSearch) -> str:
    """Return what is wrong with the request, and what to give instead."""
    return _TEXTS[error.why].format(error.detail)
