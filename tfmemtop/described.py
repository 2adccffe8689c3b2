"""Enumerations whose members have a text for people beside the value that is sent."""

from enum import Enum


class DescribedEnum(Enum):
    """The base of such enumerations. A member is ``NAME = value, text``, or ``NAME = value, text, remedy``."""

    text: str
    remedy: str
    """What helps; may be empty."""
    _value_: str

    def __new__(cls, value: str, text: str = "", remedy: str = "") -> "DescribedEnum":
        member = object.__new__(cls)
        member._value_ = value
        member.text, member.remedy = text, remedy
        return member
