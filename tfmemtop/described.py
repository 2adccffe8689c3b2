"""Enumerations whose members have a text for people beside the value that is sent."""

from enum import Enum


class DescribedEnum(Enum):
    """The base of such enumerations. A member is written as ``NAME = value, text``."""

    text: str
    _value_: str

    def __new__(cls, value: str, text: str = "") -> "DescribedEnum":
        member = object.__new__(cls)
        member._value_ = value
        member.text = text
        return member
