"""Damage to data of a hook, of TensorFlow, or in another process's memory.

The code that reads the data raises :class:`Damaged`. The code that publishes an event puts the reason into its fields.
"""

from tfmemtop.events.base import DescribedEnum


class Damage(DescribedEnum):
    """Why something could not be read; in brackets, what the detail beside it contains."""

    SYSTEM = "system", "{detail}"  # (the system's error)
    UNFORESEEN = "unforeseen", "{detail}"  # (the error's type and text)
    SUPERSEDED = "superseded", "newer ones came before it could be read"

    NOT_A_FILE = "not_a_file", "it is not a regular file"
    CUT_SHORT = "cut_short", "its end is missing"
    TOO_LARGE = "too_large", "it is larger than it can be"
    OTHER_FORM = "other_form", "its format is not known"
    OUT_OF_BOUNDS = "out_of_bounds", "it contains figures that cannot be right"
    INCOMPLETE = "incomplete", "it refers to something that it does not contain"

    GAPS = "gaps", "its chunks do not fill its regions"
    IN_USE = "in_use", "its chunks do not add up to what is in use"
    TOO_MANY = "too_many", "it has more chunks than a map can show"

    UNMAPPED = "unmapped", "there is no memory at its address"
    REPLACED = "replaced", "another object is at its address"
    CONTRADICTS = "contradicts", "its figures contradict those that were read before"
    REGIONS = "regions", "its regions do not add up to the pool"
    NO_NAME = "no_name", "its name cannot be read"
    FIGURES = "figures", "its figures contradict one another: {detail}"  # (the figures)

    NOT_A_LIBRARY = "not_a_library", "it is not a library for a 64-bit little-endian processor"
    NO_SYMBOLS = "no_symbols", "its table of symbols cannot be read"


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


def damage_text(damage: Damage, detail: str = "") -> str:
    """Return what is wrong, as the end of a sentence. Its subject is the thing that could not be read."""
    return damage.text.format(detail=detail)
