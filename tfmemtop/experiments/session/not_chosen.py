"""The reasons why what the user typed for the next run cannot be used. Pure."""

from collections.abc import Iterable
from enum import Enum


class NoChoice(Enum):
    """What is wrong with the text. The comments name the fields of :class:`NotChosen` that belong to each reason."""

    NO_LIST = "no_list"  # ``text`` is not a list of GPUs
    NO_GPU = "no_gpu"  # the GPU with the number ``text`` does not exist; ``there``: the GPUs that do
    UNREADABLE = "unreadable"  # a shell could not parse the command line; ``text``: Python's message
    NO_COMMAND = "no_command"


class NotChosen(ValueError):
    """What the user typed for the next run cannot be used. ``words/not_chosen.py`` has the message for the user."""

    def __init__(self, why: NoChoice, text: str = "", there: Iterable[int] = ()) -> None:
        super().__init__(why, text)
        self.why = why
        self.text = text
        self.there = tuple(there)
