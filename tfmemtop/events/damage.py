"""Damage to data of a hook, of TensorFlow, or in another process's memory.

The code that reads the data raises :class:`Damaged`. The code that publishes an event puts the reason into its fields.
"""

from enum import Enum


class Damage(Enum):
    """Why something could not be read; in brackets, what the detail beside it contains."""

    SYSTEM = "system"  # (the system's error)
    UNFORESEEN = "unforeseen"  # (the error's type and text)
    SUPERSEDED = "superseded"  # newer ones came before it was read

    NOT_A_FILE = "not_a_file"
    CUT_SHORT = "cut_short"
    TOO_LARGE = "too_large"
    OTHER_FORM = "other_form"  # it does not have the layout that its writer uses
    OUT_OF_BOUNDS = "out_of_bounds"  # a figure in it cannot be right
    INCOMPLETE = "incomplete"  # it refers to something that is not in it

    GAPS = "gaps"  # its chunks do not fill its regions
    IN_USE = "in_use"  # its chunks do not add up to what is in use
    TOO_MANY = "too_many"  # it has more chunks than a map can show

    UNMAPPED = "unmapped"  # no memory is at its address
    UNSTEADY = "unsteady"  # its figures changed between any two readings
    REPLACED = "replaced"  # another object is at its address
    CONTRADICTS = "contradicts"  # it contradicts an earlier reading of the same allocator
    REGIONS = "regions"  # they do not add up to the pool
    LISTS = "lists"  # its lists of regions and chunks do not have the expected layout
    NO_NAME = "no_name"  # its name cannot be read
    FIGURES = "figures"  # its figures contradict one another (the figures)

    NOT_A_LIBRARY = "not_a_library"  # it is not a library for 64-bit little-endian processors
    NO_SYMBOLS = "no_symbols"  # its table of symbols cannot be read


class Damaged(ValueError):
    """The data that was read is invalid. ``damage`` is the kind of damage; some kinds also have a ``detail``."""

    def __init__(self, damage: Damage, detail: str = "") -> None:
        super().__init__(damage.value, detail)
        self.damage = damage
        self.detail = detail


def damage_of(error: BaseException) -> tuple[Damage, str]:
    """Return the kind of damage and the detail that describe *error*."""
    if isinstance(error, Damaged):
        return error.damage, error.detail
    if isinstance(error, OSError):
        return Damage.SYSTEM, error.strerror or str(error)
    return Damage.UNFORESEEN, f"{type(error).__name__}: {error}"


_TEXTS = {
    Damage.SYSTEM: "{detail}",
    Damage.UNFORESEEN: "{detail}",
    Damage.SUPERSEDED: "newer ones came before it could be read",
    Damage.NOT_A_FILE: "it is not a regular file",
    Damage.CUT_SHORT: "its end is missing",
    Damage.TOO_LARGE: "it is larger than it can be",
    Damage.OTHER_FORM: "its format is not known",
    Damage.OUT_OF_BOUNDS: "it contains figures that cannot be right",
    Damage.INCOMPLETE: "it refers to something that it does not contain",
    Damage.GAPS: "its chunks do not fill its regions",
    Damage.IN_USE: "its chunks do not add up to what is in use",
    Damage.TOO_MANY: "it has more chunks than a map can show",
    Damage.UNMAPPED: "there is no memory at its address",
    Damage.UNSTEADY: "its figures changed during each reading",
    Damage.REPLACED: "another object is at its address",
    Damage.CONTRADICTS: "its figures contradict those that were read before",
    Damage.REGIONS: "its regions do not add up to the pool",
    Damage.LISTS: "its lists of regions and chunks are not laid out as expected",
    Damage.NO_NAME: "its name cannot be read",
    Damage.FIGURES: "its figures contradict one another: {detail}",
    Damage.NOT_A_LIBRARY: "it is not a library for a 64-bit little-endian processor",
    Damage.NO_SYMBOLS: "its table of symbols cannot be read",
}


def damage_text(damage: Damage, detail: str = "") -> str:
    """Return what is wrong, as the end of a sentence. Its subject is the thing that could not be read."""
    return _TEXTS[damage].format(detail=detail)
