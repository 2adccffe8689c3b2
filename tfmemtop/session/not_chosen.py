"""Why the next run cannot be as it was typed, as a fact. Pure."""

from collections.abc import Iterable
from enum import Enum


class NoChoice(Enum):
    """What is wrong with it; in brackets, which fields of :class:`NotChosen` belong to it."""

    NO_LIST = "no_list"  # of GPUs (text)
    NO_GPU = "no_gpu"  # of that number (text; there: those that are)
    UNREADABLE = "unreadable"  # as a shell reads a command line (text: what Python says of it)
    NO_COMMAND = "no_command"


class NotChosen(ValueError):
    """There can be no such next run. ``words/not_chosen.py`` says it to the user."""

    def __init__(self, why: NoChoice, text: str = "", there: Iterable[int] = ()) -> None:
        super().__init__(why, text)
        self.why = why
        self.text = text
        self.there = tuple(there)
