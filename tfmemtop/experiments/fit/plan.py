"""The plan of a search: the command, its settings, how far each try has to get, and what is searched. Pure."""

import re
from typing import NamedTuple

import msgspec

from tfmemtop.experiments.fit.largest import LargestSearch, Wanted, parse_wanted
from tfmemtop.experiments.fit.search import LimitSearch, Search
from tfmemtop.experiments.fit.watch import Goal, TryWatch
from tfmemtop.limits import Basis, SuggestedLimit
from tfmemtop.settings import Growth, Settings

SECONDS_MOST, STEPS_MOST, TRIES_MOST = 86_400, 1_000_000_000, 50
SECONDS, TRIES = 30.0, 8
"""The defaults: seconds that a try has to run, and the number of tries."""

WRONG_ALLOCATOR = "fit needs the allocator bfc: a limit has no effect on cuda_malloc_async"

_GOAL = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*(s|secs?|seconds?|m|mins?|minutes?|h|hours?|steps?)", re.I)
_TRIES = re.compile(r"(\d{1,6})\s*(?:try|tries)", re.I)


class ImpossibleSearch(ValueError):
    """The search cannot be made. The message has the reason, and what to give instead."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a search for a limit, or for a value.

    ``settings`` are the settings of every try, except for its limit; ``has_gpus`` is whether the machine has a GPU. The
    limit is for each GPU, or for the CPU pool. ``smallest`` and ``largest`` bound the limits that are tried,
    ``ceiling`` is what the machine has; bytes, ``None`` if not given or not known. ``host_memory`` is the size of the
    CPU pool in a try without a limit, in bytes. With ``wanted`` the search is for the largest value of a number in the
    command instead, under the limit ``largest``.

    Raises:
        ImpossibleSearch: the allocator is ``cuda_malloc_async``, on which a limit has no effect.
    """

    command: list[str]
    settings: Settings
    has_gpus: bool
    host_memory: int
    goal: Goal = Goal(SECONDS)
    tries: int = TRIES
    smallest: int | None = None
    largest: int | None = None
    ceiling: int | None = None
    wanted: Wanted | None = None

    def __post_init__(self) -> None:
        if self.settings.allocator == "cuda_malloc_async":
            raise ImpossibleSearch(WRONG_ALLOCATOR)

    @property
    def on_gpu(self) -> bool:
        """Whether the limit is that of the GPUs, and not of the CPU pool."""
        return self.has_gpus and self.settings.gpus != ()

    @property
    def growth(self) -> Growth | None:
        """The growth of every try on a GPU. It is on, unless the user has turned it off.

        Without growth the pool is always as large as the limit, and the first try would take the whole GPU.
        """
        return (self.settings.growth or "on") if self.on_gpu else None

    def search(self) -> Search:
        """Return a new search, without any tries."""
        if self.wanted is not None:
            return LargestSearch(self.wanted, self.tries, self.largest)
        return LimitSearch(tries=self.tries, smallest=self.smallest, largest=self.largest, ceiling=self.ceiling)

    def watch(self, search: Search) -> TryWatch:
        """Return the watch for the next try of *search*."""
        return TryWatch("GPU" if self.on_gpu else "CPU", self.goal, search.model, growth=self.growth != "off")

    def suggested(self, search: Search) -> SuggestedLimit | None:
        """Return the limit to set after *search*; ``None`` if it has found none."""
        if not isinstance(search, LimitSearch) or search.found is None or search.advice is None:
            return None
        return SuggestedLimit(search.advice, Basis.FIT, search.found, on_gpu=self.on_gpu, growth=self.growth)

    def argv(self, value: int | None) -> list[str]:
        """Return the command of a try with *value*; unchanged if there is none."""
        return self.command if self.wanted is None or value is None else self.wanted.placed(self.command, value)

    def settings_of(self, limit: int | None) -> Settings:
        """Return the settings of a try under *limit* bytes (``None``: without a limit)."""
        if self.on_gpu:
            return msgspec.structs.replace(self.settings, growth=self.growth, memory_limit=limit)
        # Without a pool of its own the CPU has no allocator that reports a peak.
        return msgspec.structs.replace(self.settings, memory_limit=None, cpu_pool=limit or self.host_memory)


class Sought(NamedTuple):
    """What the user requests: how far a try has to get, how many tries, and the number to maximise, if any."""

    goal: Goal = Goal(SECONDS)
    tries: int = TRIES
    wanted: Wanted | None = None


def parse_sought(text: str) -> Sought:
    """Parse a request such as ``5 min, 6 tries`` or ``batch=1..4096, 5 steps``. What is left out has its default.

    Raises:
        ImpossibleSearch: a part is no goal, no number of tries and no range; a number is too small or too large; or
            there are several ranges.
    """
    sought = Sought()
    parts = [part.strip() for part in text.split(",") if part.strip()]
    ranges = [part for part in parts if "=" in part]
    if ranges:
        wanted = parse_wanted(ranges[0])
        if wanted is None or len(ranges) > 1:
            problem = "give one name and a range of whole numbers, such as batch=1..4096"
            raise ImpossibleSearch(f"{', '.join(ranges)}: {problem}")
        sought = sought._replace(wanted=wanted)
    for part in parts:
        if match := _TRIES.fullmatch(part):
            if not 1 <= int(match[1]) <= TRIES_MOST:
                raise ImpossibleSearch(f"{part}: give 1 to {TRIES_MOST} tries")
            sought = sought._replace(tries=int(match[1]))
        elif match := _GOAL.fullmatch(part):
            sought = sought._replace(goal=_goal(float(match[1]), match[2].lower(), part))
        elif part not in ranges:
            raise ImpossibleSearch(f"{part!r} is not understood; give for example: 30 s, 8 tries; or: 200 steps")
    return sought


def _goal(number: float, unit: str, text: str) -> Goal:
    if unit.startswith("st"):
        if not (number.is_integer() and 1 <= number <= STEPS_MOST):
            raise ImpossibleSearch(f"{text}: give a whole number of steps from 1 on")
        return Goal(steps=int(number))
    seconds = number * {"s": 1, "m": 60, "h": 3600}[unit[0]]
    if not 1 <= seconds <= SECONDS_MOST:
        raise ImpossibleSearch(f"{text}: give 1 second to 24 hours")
    return Goal(seconds)
