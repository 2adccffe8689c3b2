"""Why a search cannot be made as it was asked for, as a fact. Pure."""

from enum import Enum


class NoSearch(Enum):
    """What is wrong with it. Of some, the detail is the text that was given."""

    ALLOCATOR = "allocator"  # a limit has no effect on cuda_malloc_async
    NO_PLACE = "no_place"  # the command has no place for the value; detail: its name
    NO_LIMIT = "no_limit"  # the CPU's pool has none, under which the value is to fit
    NO_RANGE = "no_range"  # detail
    TRIES = "tries"  # none, or too many; detail
    STEPS = "steps"  # none, too many, or a part of one; detail
    SECONDS = "seconds"  # too short or too long; detail
    NO_GOAL = "no_goal"  # neither a goal nor a number of tries; detail


class NotSought(ValueError):
    """No such search can be made. ``words/not_sought.py`` says it to the user."""

    def __init__(self, why: NoSearch, detail: str = "") -> None:
        super().__init__(why, detail)
        self.why = why
        self.detail = detail
