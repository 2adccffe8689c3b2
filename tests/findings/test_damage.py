"""Data that could not be read: every reason has a text, and is listed in the manual."""

import pytest

from tfmemtop.events import Damage, Outside, OutsideState
from tfmemtop.events.damage import damage_text
from tfmemtop.findings.outside_text import say_state
from tfmemtop.help import topic


@pytest.mark.parametrize("damage", Damage)
def test_every_reason_is_said_and_listed(damage: Damage) -> None:
    assert "{" not in damage_text(damage, "why") and damage_text(damage, "why")
    assert f"`{damage.value}`" in topic("formats")


def test_it_ends_the_sentence_of_what_could_not_be_read() -> None:
    outside = Outside(t=1.0, pid=7, state=OutsideState.NOT_SOUND, damage=Damage.REGIONS)
    assert "cannot be right: its regions do not add up to the pool" in say_state(outside).text
    older = Outside(t=1.0, pid=7, state=OutsideState.NOT_SOUND, detail="its regions do not add up")
    assert "cannot be right: its regions do not add up" in say_state(older).text
