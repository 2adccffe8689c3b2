"""Damage to data of a hook, of TensorFlow, or in another process's memory.

The reader of the data raises it. The publisher turns it into a fact.
"""

from enum import Enum


class Damage(Enum):
    """Why something could not be read; in brackets what the detail beside it holds."""

    SYSTEM = "system"  # (the system's error)
    UNFORESEEN = "unforeseen"  # (the error's type and text)
    SUPERSEDED = "superseded"  # newer ones came before it was read

    NOT_A_FILE = "not_a_file"
    CUT_SHORT = "cut_short"
    TOO_LARGE = "too_large"
    OTHER_FORM = "other_form"  # it is not laid out as its writer does it
    OUT_OF_BOUNDS = "out_of_bounds"  # a figure in it cannot be right
    INCOMPLETE = "incomplete"  # it refers to something that is not in it

    GAPS = "gaps"  # its chunks do not fill its regions
    IN_USE = "in_use"  # its chunks do not add up to what is in use
    TOO_MANY = "too_many"  # chunks for a map

    UNMAPPED = "unmapped"  # no memory is at its address
    UNSTEADY = "unsteady"  # two readings never agree
    REPLACED = "replaced"  # another object is at its address
    CONTRADICTS = "contradicts"  # an earlier reading of the same allocator
    REGIONS = "regions"  # they do not add up to the pool
    LISTS = "lists"  # of regions and chunks are not laid out as expected
    NO_NAME = "no_name"  # that can be read
    FIGURES = "figures"  # they contradict one another (they themselves)

    NOT_A_LIBRARY = "not_a_library"  # for 64-bit little-endian processors
    NO_SEGMENTS = "no_segments"  # its list of them cannot be read
    NO_SYMBOLS = "no_symbols"  # its table of them cannot be read


class Damaged(ValueError):
    """The data that was read is invalid: ``damage`` says how. Some kinds also have a ``detail``."""

    def __init__(self, damage: Damage, detail: str = "") -> None:
        super().__init__(damage.value, detail)
        self.damage = damage
        self.detail = detail


def damage_of(error: BaseException) -> tuple[Damage, str]:
    """The fact and the detail by which *error* is told."""
    if isinstance(error, Damaged):
        return error.damage, error.detail
    if isinstance(error, OSError):
        return Damage.SYSTEM, error.strerror or str(error)
    return Damage.UNFORESEEN, f"{type(error).__name__}: {error}"
