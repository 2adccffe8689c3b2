"""The reason why a search cannot be made as the user requested it, as a value. Pure."""

from enum import Enum


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
