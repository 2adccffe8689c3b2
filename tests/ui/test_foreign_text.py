"""No text of a recording can control the terminal. Here every text of every event contains control sequences."""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path

import pexpect
import pytest

from tests.anything import Filling
from tests.starting import PROGRAM, on_pty
from tests.streams import written
from tests.ui.tour import SIZES, tour
from tfmemtop.cli import main as cli
from tfmemtop.cli import once
from tfmemtop.cli.output import say
from tfmemtop.cli.record import report
from tfmemtop.events import FORMAT, RunEnd
from tfmemtop.events.recording.lines import stopped

# These sequences set the clipboard and the title, set colours, move the cursor, and clear the screen, in their 7-bit
# and 8-bit forms. Other characters reverse the direction of writing, are invisible, or break lines.
POISON = (
    "GPU:0 \x1b]52;c;cG9pc29u\x07\x1b]0;poison\x1b\\\x1b[31;5;7;41m\x1b[777;777H\x1bc\x9b2J\x9d0;poison\x9c"
    "\u202eevil\u2066\u200b\u2028\u2029\x85\x7f\b\r\n\t\0 end"
)
FILLED = Filling(POISON, 3, named={"pid": 100, "ppid": 1, "run": 1, "index": 0, "format": FORMAT, "t": 1.0})

# What Textual itself writes: CSI sequences with digits, its query for synchronised output, and the pointer's shape.
OWN = re.compile(r"\x1b\[[?<>=]?[0-9;]*(?:\$p|[A-Za-z])|\x1b\]22;default\x07")


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("poisoned") / "run.jsonl", FILLED.events())


def harmless(printed: str, allowed: str) -> None:
    rest = OWN.sub("", printed)
    odd = {c for c in rest if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in allowed}
    assert not odd, [ascii(rest[max(0, rest.index(c) - 20) :][:60]) for c in odd]
    for sequence in ("\x1b[31;5;7;41m", "\x1b[777;777H", "\x1bc"):
        assert sequence not in printed


async def test_no_screen_lets_anything_through() -> None:
    told = 0
    for place, (shown, drawn) in (await tour(FILLED.events(), SIZES[-1])).items():
        assert "cannot be drawn" not in shown, place
        harmless(drawn, "\r\n")
        told += "evil" in shown
    assert told >= 5, "the poison has been drawn"


@pytest.mark.programs
def test_a_real_terminal_gets_nothing_but_our_own(poisoned: Path) -> None:
    environment = os.environ | {"TERM": "xterm-256color"}
    child = on_pty(PROGRAM, "replay", str(poisoned), size=(100, 24), env=environment)
    printed = ""
    for key, answer in (("", "evil"), ("M", "Pool of"), ("\x1b", "Processes"), ("W", "more below"), ("\x03", "evil")):
        child.send(key)
        child.expect(answer)
        printed += f"{child.before}{child.after}"
    child.send("q")
    child.expect(pexpect.EOF)
    printed += str(child.before)
    assert child.wait() == 0
    harmless(printed, "\r\n")


@pytest.mark.parametrize("command", [["why"], ["compare", "--json"]])
def test_no_report_lets_anything_through(
    poisoned: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(poisoned)] * (2 if command[0] == "compare" else 1)
    assert cli.main([*command, *files]) == 0
    out, err = capsys.readouterr()
    assert "evil" in out
    harmless(out + err, "\n")


def test_no_summary_lets_anything_through(
    poisoned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    end = RunEnd(t=1.0, run=1, exit_code=0, signal=None)
    for line in report(poisoned, end, stopped(poisoned, POISON), 0):
        say(line)
    monkeypatch.setattr(once, "read", lambda _, outside: (FILLED.events(), [POISON]))
    assert cli.main(["--once"]) == 0
    assert cli.main(["--once", "--json"]) == 0
    out, err = capsys.readouterr()
    assert "evil" in out and "evil" in err
    harmless(out + err, "\n")


@pytest.mark.programs
@pytest.mark.parametrize(
    "arguments",
    [
        [POISON],
        [f"--{POISON}"],
        ["replay", POISON],
        ["attach", POISON],
        ["--memory-limit", POISON, "--", "true"],
        ["record", "-o", f"/{POISON}/x", "--", "true"],
    ],
)
def test_no_error_message_lets_an_argument_through(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert cli.main([argument.replace("\0", "") for argument in arguments]) in (1, 2, 126, 127)
    out, err = capsys.readouterr()
    *sessions, told = err.splitlines()  # attach first lists the sessions of the machine, if there are any
    assert told.startswith("tfmemtop: ") and (not sessions or arguments[0] == "attach")
    harmless(out + err, "\n")
