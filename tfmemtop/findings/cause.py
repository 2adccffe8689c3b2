"""The cause of what a run's memory did: its key, who holds the memory, and what helps.

There is one :class:`Cause` for each run or failure. ``why --json`` has its key, holder and figures.
"""

import textwrap
from enum import Enum

import msgspec

from tfmemtop.findings.remedy import Remedy
from tfmemtop.safe import safe

LONGEST = 160
"""Characters of the text of a verdict."""
PREFIX = len("Out of memory: ")
"""Characters before the text of a cause."""


class Key(str, Enum):
    """Keys of causes, those of ``why --json``. A kind of finding may have a key of its own that is not here."""

    __str__ = str.__str__

    NONE = "none"  # memory was no trouble
    NOT_MEMORY = "not_memory"  # the run failed for another reason
    UNKNOWN = "unknown"  # an allocation failed, and what is known does not show why
    LIMIT_TOO_SMALL = "limit_too_small"  # what the script steadily needs is more than the limit or the card
    STEP_LARGER = "step_larger_than_before"
    TENSORS_KEPT = "tensors_kept"
    VARIABLES_KEPT = "variables_kept"
    NOTEBOOK_HISTORY = "notebook_history"
    RUNTIME_KEEPS = "runtime_keeps"  # memory that no Python object holds
    TAPE_OPEN = "tape_open"
    CONSTANTS_CAPTURED = "constants_captured"
    DATASET_BUFFER = "dataset_buffer"
    INPUT_ON_DEVICE = "input_on_device"
    GROWN_BY_COPYING = "grown_by_copying"
    DENSE_GRADIENT = "dense_gradient"
    GROWTH = "growth"  # memory in use keeps rising, and who holds it is not known
    FRAGMENTATION = "fragmentation"
    SCRATCH = "scratch"
    OTHERS = "others_hold_the_card"
    RESERVED = "reserved_not_used"
    SETTING = "setting_without_effect"
    RETRACING = "retracing"
    HOST_GROWTH = "host_growth"
    OTHER_FRAMEWORK = "other_framework"


class Cause(msgspec.Struct, frozen=True):
    """A cause. ``text`` states it in one sentence, ``evidence`` are further sentences, the most important first.

    ``holder`` is who holds the memory, as Python's path to it or TensorFlow's name; empty where nobody is known or the
    cause is no holder. ``bytes`` and ``count`` are how much it holds and in how many pieces, ``None`` where that is not
    known. ``code`` are lines for the script. ``mostly`` are texts that also say what is in use, the best first:
    the first that fits takes the place of the text.
    """

    key: str
    text: str
    holder: str = ""
    bytes: int | None = None
    count: int | None = None
    remedies: tuple[Remedy, ...] = ()
    code: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    explanation: str = ""
    mostly: tuple[str, ...] = ()

    @property
    def brief(self) -> str:
        """What helps, in a short sentence; empty where no remedy has one."""
        return next((one.brief for one in self.remedies if one.brief), "")

    @property
    def advice(self) -> str:
        """The same, or else the first setting that helps, with its option."""
        settings = (one.elsewhere for one in self.remedies if one.complete)
        return self.brief or next((f"{text[0].upper()}{text[1:]}." for text in settings), "")

    @property
    def advised(self) -> str:
        """The text in at most :data:`LONGEST` characters, with what helps at its end where there is room for that."""
        return shortened(advised(self.text, brief=self.brief))

    @property
    def keeps_growing(self) -> bool:
        """Whether more and more memory would be needed, so that no limit is enough for long."""
        return self.key in _GROWS


def fitting(*texts: str, room: int = 0, brief: str = "") -> str:
    """Return the first of *texts* that leaves *room* characters in the text of a verdict; the last if none does.

    With *brief* at its end, if one of them leaves room for that.
    """
    with_advice = (f"{text} {brief}" for text in texts if brief)
    return next((text for text in (*with_advice, *texts) if len(text) <= LONGEST - room), texts[-1])


def advised(*texts: str, brief: str, room: int = 0) -> str:
    """Return the first of *texts* that leaves room for the advice *brief*, whole or else up to its comma, with that.

    Where there is no room, or a text has it already, return the first that fits, as :func:`fitting` does. That does not
    cut the advice: it makes parts of a verdict, for which the line may still be left out.
    """
    first = brief.partition(", ")[0].removesuffix(".")
    whole = fitting(*texts, room=room, brief="" if first in texts[0] else brief)
    return whole if first in whole else fitting(*texts, room=room, brief=f"{first}.")


def shortened(text: str) -> str:
    """Return *text* in at most :data:`LONGEST` characters: last sentences are left out first, then words."""
    text = safe(" ".join(text.split()))
    while len(text) > LONGEST and ". " in text:
        text = text[: text.rindex(". ") + 1]
    return text if len(text) <= LONGEST else textwrap.shorten(text, LONGEST, placeholder=" …")


_GROWS = {
    Key.TENSORS_KEPT,
    Key.VARIABLES_KEPT,
    Key.NOTEBOOK_HISTORY,
    Key.RUNTIME_KEEPS,
    Key.TAPE_OPEN,
    Key.CONSTANTS_CAPTURED,
    Key.GROWN_BY_COPYING,
    Key.GROWTH,
}
