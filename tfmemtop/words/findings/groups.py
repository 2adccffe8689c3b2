"""What is said of findings that are alike on many devices. Pure."""

from dataclasses import replace

from tfmemtop.rules.finding import DeviceFinding
from tfmemtop.rules.grouping import Group
from tfmemtop.words.findings.saying import Said, say
from tfmemtop.words.places import gpus


def say_group(group: Group) -> Said:
    """What is said of the first finding, and before it the places of all if there are several."""
    said = say(group.first)
    return said if len(group.findings) == 1 else replace(said, headline=f"{_places(group)} alike. {said.headline}")


def group_text(group: Group) -> str:
    """The same as text."""
    return say_group(group).text


def _places(group: Group) -> str:
    numbers = {f.place.gpu for f in group.findings if isinstance(f, DeviceFinding) and f.place.gpu is not None}
    return gpus(numbers) if len(numbers) == len(group.findings) else f"{len(group.findings)} devices"
