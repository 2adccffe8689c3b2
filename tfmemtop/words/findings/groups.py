"""The text of findings that are alike on many devices. Pure."""

from dataclasses import replace

from tfmemtop.rules.finding import DeviceFinding
from tfmemtop.rules.grouping import Group
from tfmemtop.words.findings.saying import Said, say
from tfmemtop.words.places import gpus


def say_group(group: Group) -> Said:
    """Return the text of the group's first finding; if there are several, with the places of all in front."""
    said = say(group.first)
    return said if len(group.findings) == 1 else replace(said, headline=f"{_places(group)} alike. {said.headline}")


def group_text(group: Group) -> str:
    """Return headline and figures of :func:`say_group` in one text."""
    return say_group(group).text


def _places(group: Group) -> str:
    numbers = {f.place.gpu for f in group.findings if isinstance(f, DeviceFinding) and f.place.gpu is not None}
    return gpus(numbers) if len(numbers) == len(group.findings) else f"{len(group.findings)} devices"
