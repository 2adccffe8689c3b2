"""Data that could not be read: every reason has a text, and is listed in the manual."""

import pytest

from tfmemtop.events import Damage, Level, Notice, NoticeKind, Outside, OutsideState
from tfmemtop.events.damage import damage_text
from tfmemtop.findings.notice_texts import say
from tfmemtop.findings.outside_text import say_state
from tfmemtop.help import topic


@pytest.mark.parametrize("damage", Damage)
def test_every_reason_is_said_and_listed(damage: Damage) -> None:
    assert "{" not in damage_text(damage, "why") and damage_text(damage, "why")
    assert f"`{damage.value}`" in topic("formats")


def test_it_ends_the_sentence_of_what_could_not_be_read() -> None:
    unread = Notice(
        t=1.0,
        key="dump",
        level=Level.WARNING,
        kind=NoticeKind.DUMP_UNREAD,
        detail="7_GPU_0_bfc.1",
        damage=Damage.CUT_SHORT,
    )
    assert say(unread).line == "the state of the pool that ran out is unknown: 7_GPU_0_bfc.1: its end is missing"
    outside = Outside(t=1.0, pid=7, state=OutsideState.NOT_SOUND, damage=Damage.REGIONS)
    assert "cannot be right: its regions do not add up to the pool" in say_state(outside).text
    older = Outside(t=1.0, pid=7, state=OutsideState.NOT_SOUND, detail="its regions do not add up")
    assert "cannot be right: its regions do not add up" in say_state(older).text
