"""Foreign text: what is shown of it cannot control the terminal or deceive a reader. All else is left unchanged."""

import json
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tfmemtop.charset import json_ascii
from tfmemtop.safe import safe


@given(st.text())
@example("a\x1b[31m\r\n\x00\u202e\u200b\x9b2J\ud800\u3164")
@example("e" + "\u0301\ufe0f" * 20)
def test_nothing_steers_and_a_second_pass_changes_nothing(text: str) -> None:
    shown = safe(text)
    assert not {unicodedata.category(character) for character in shown} & {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"}
    assert safe(shown) == shown
    assert safe(text * 300)[: len(shown)] == shown, "a long text is treated as a short one is"


def test_each_plain_character_is_left_as_it_is() -> None:
    kept = (character for character in map(chr, range(0x110000)) if unicodedata.category(character)[0] in "LNPS")
    changed = {character for character in kept if safe(character) != character}
    assert changed == set("\u115f\u1160\u3164\uffa0"), "fillers look like nothing"
    assert safe("naïve 漢字 🇩🇪 — ▁▂ ⣿ ") == "naïve 漢字 🇩🇪 — ▁▂ ⣿ "


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("two\r\nlines\tand\u2028more", "two  lines and more"),
        ("\x1b]52;c;eA==\x07", "?]52;c;eA==?"),
        ("\x9d0;title\x9c\x7f", "?0;title??"),
        ("user\u202egpj.exe", "user?gpj.exe"),
        ("a\u200bb\u2060c\u00add", "a?b?c?d"),
        ("half \ud83d", "half ?"),
        ("☁\ufe0f", "☁"),
        ("z" + "\u0301" * 50, "z" + "\u0301" * 8),
    ],
)
def test_what_becomes_of_it(text: str, shown: str) -> None:
    assert safe(text) == shown


@given(st.text(st.characters(codec="utf-8")))
def test_json_means_the_same(text: str) -> None:
    told = json_ascii(json.dumps([text], ensure_ascii=False))
    assert json.loads(told) == [text]
    assert all(character.isprintable() for character in told)
