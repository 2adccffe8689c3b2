"""Notices: every kind has a text."""

import pytest

from tfmemtop.events import Level, Notice, NoticeKind
from tfmemtop.findings.notice_texts import say
from tfmemtop.findings.notices import Noticed
from tfmemtop.findings.remedy import on_screen


def notice(kind: NoticeKind | None, detail: str = "why it is so") -> Notice:
    return Notice(t=1.0, key="k", level=Level.WARNING, kind=kind, detail=detail, about=4711, count=12)


@pytest.mark.parametrize("kind", NoticeKind)
def test_every_kind_is_said_with_what_it_is_about(kind: NoticeKind) -> None:
    said = say(notice(kind)).line
    assert said
    assert "{" not in said and "None" not in said


def test_what_comes_from_outside_is_not_taken_for_a_template() -> None:
    assert "{about} {x}" in say(notice(NoticeKind.DRIVER_FAILED, "{about} {x}")).text


def test_one_that_takes_back_says_nothing() -> None:
    assert say(notice(None)).line == ""


@pytest.mark.parametrize("kind", NoticeKind)
def test_a_finding_offers_what_helps_where_there_is_something(kind: NoticeKind) -> None:
    given = notice(kind)
    assert [on_screen(remedy) for remedy in Noticed(given).remedies] == [text for text in [say(given).remedy] if text]
