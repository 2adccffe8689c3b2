"""The text about why something in a file, or in another process's memory, could not be read."""

from tfmemtop.events import Damage

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
    Damage.NO_SEGMENTS: "its list of segments cannot be read",
    Damage.NO_SYMBOLS: "its table of symbols cannot be read",
}


def damage_text(damage: Damage, detail: str = "") -> str:
    """Return what is wrong, as the end of a sentence. Its subject is the thing that could not be read."""
    return _TEXTS[damage].format(detail=detail)
