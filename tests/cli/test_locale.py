"""In a locale that is not UTF-8, only ASCII reaches the terminal, and no printed character causes an error."""

from __future__ import annotations

import codecs
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pyte
import pytest

from tests.patience import PATIENCE_S, end
from tests.starting import PROGRAM
from tfmemtop.charset import json_ascii, takes_utf8, to_ascii

RECORDINGS = Path(__file__).parents[1] / "recordings"
LATIN = "en_US.ISO-8859-1"
BARE = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}


@pytest.fixture(scope="module")
def locales(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder in which the C library finds a Latin-1 locale.

    Where ``localedef`` or the sources of the locale are missing, the folder is empty: only the locale's name is set.
    """
    folder = tmp_path_factory.mktemp("locales")
    if shutil.which("localedef"):
        made = ["localedef", "--no-archive", "-i", "en_US", "-f", "ISO-8859-1", str(folder / LATIN)]
        subprocess.run(made, capture_output=True, check=False)
    yield folder


@pytest.mark.parametrize(
    ("environment", "utf8"),
    [
        ({}, True),
        ({"LANG": "C"}, False),
        ({"LC_ALL": "POSIX", "LANG": "en_US.UTF-8"}, False),
        ({"LC_ALL": "", "LC_CTYPE": "C", "LANG": "en_US.UTF-8"}, False),
        ({"LC_CTYPE": "de_DE.utf8", "LANG": "C"}, True),
        ({"LC_CTYPE": "UTF-8"}, True),
        ({"LANG": LATIN}, False),
        ({"LANG": "de_DE@euro"}, False),
    ],
)
def test_the_users_variables_decide(environment: dict[str, str], utf8: bool) -> None:
    assert takes_utf8(environment) is utf8


def test_what_stands_in_place_of_other_characters_is_as_wide() -> None:
    assert to_ascii("3×4 µs — 50 °C … é ─│█ ⣿") == "3x4 us - 50  C ~ e -|# :"
    assert to_ascii("日本 e\u0301 \U0001f600") == "???? e ??"
    assert json.loads(json_ascii('{"a": "日 \U0001f600"}')) == {"a": "日 \U0001f600"}


def test_only_ascii_reaches_the_terminal(home: Path, locales: Path) -> None:
    """The test opens panels and dialogs of the screen. It also sends keys that a Latin-1 keyboard sends as one byte."""
    environment = BARE | {"LC_ALL": LATIN, "LOCPATH": str(locales)}
    # The home fixture has set these for this process.
    environment |= {key: os.environ[key] for key in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "TERM")}
    child: Any = pexpect.spawn(
        PROGRAM,
        ["replay", str(RECORDINGS / "cpu-oom.jsonl")],
        dimensions=(40, 140),
        env=environment,
        timeout=PATIENCE_S,
    )
    drawn = b""
    screen = pyte.Screen(140, 40)
    stream = pyte.ByteStream(screen)
    try:
        for keys, sight, seen in [
            (b"", "TF-POOL", True),
            (b"\xe9\xe4?", "Every key of the screen", True),
            (b"\x1b", "Every key of the screen", False),
            (b"W", "+- Why -", True),
            # A key that follows Escape at once would be read with it, as Alt and that key.
            (b"\x1b", "+- Why -", False),
        ]:
            child.send(keys)
            while any(sight in line for line in screen.display) is not seen:
                some = child.read_nonblocking(1 << 16, PATIENCE_S)
                drawn += some
                stream.feed(some)
        child.send(b"qq")  # the dialog may still be there: the first key then closes it
        child.expect(pexpect.EOF)
        drawn += child.before
    finally:
        end(child)
    assert child.exitstatus == 0
    assert drawn.isascii(), re.findall(rb"[^\x00-\x7f]+", drawn)[:5]


# In Latin-1, a character that Latin-1 lacks would raise an error.
OF_EACH_KIND = [
    ["why", str(RECORDINGS / "cpu-oom.jsonl")],
    ["replay", "nicht-da-é.jsonl"],
    ["record", "-o", "{tmp}/é.jsonl", "--", "true"],
]


@pytest.mark.parametrize("command", OF_EACH_KIND, ids=lambda value: " ".join(value)[:12])
def test_what_is_printed_is_ascii_and_never_fails(
    home: Path,
    locales: Path,
    tmp_path: Path,
    command: list[str],
) -> None:
    done = subprocess.run(
        [PROGRAM, *(word.format(tmp=tmp_path) for word in command)],
        capture_output=True,
        check=False,
        env=BARE | {"LC_ALL": LATIN, "LOCPATH": str(locales), "XDG_STATE_HOME": str(tmp_path)},
        timeout=PATIENCE_S,
    )
    printed = done.stdout + done.stderr
    assert done.returncode in (0, 1, 2)
    assert printed.isascii() and b"Traceback" not in printed and b"UnicodeEncodeError" not in printed, printed


@pytest.mark.programs
def test_bytes_that_are_no_text_at_all_are_printed_somehow(tmp_path: Path) -> None:
    done = subprocess.run(
        [PROGRAM, "replay", os.fsdecode(b"\xff\xfe.jsonl")],
        capture_output=True,
        check=False,
        env=BARE | {"LC_ALL": "C.UTF-8"},
    )
    assert done.returncode == 2
    assert codecs.decode(done.stderr, "utf-8") == "tfmemtop: cannot read ??.jsonl: No such file or directory\n"
