"""What was read is damaged: raised where it is seen, told as a fact where it is published."""

from tfmemtop.events import Damage


class Damaged(ValueError):
    """What was read cannot be right: ``damage``, and with some of them a ``detail``."""

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
