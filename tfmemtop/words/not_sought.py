"""The error texts for a search that cannot be made as it was requested, in one sentence. Pure."""

from tfmemtop.fit.not_sought import NoSearch, NotSought
from tfmemtop.fit.plan import TRIES_MOST

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


def not_sought(error: NotSought) -> str:
    """Return what is wrong with the request, and what to give instead."""
    return _TEXTS[error.why].format(error.detail)
