"""Completion scripts, run by the shells themselves: bash, and zsh and fish where they are installed."""

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.own_sessions import own_sessions
from tests.patience import end
from tests.starting import PROGRAM, Start, on_pty, ran
from tfmemtop.cli import NAMES
from tfmemtop.cli.parser import parsers
from tfmemtop.engine.stream.kept_sessions import kept_recordings

pytestmark = pytest.mark.programs

COMMANDS = set(NAMES)


@cache
def script_for(shell: str) -> str:
    """Return the script that the program prints for *shell*."""
    return ran([PROGRAM, "completion", shell], check=True).stdout


def in_bash(line: str, folder: Path) -> set[str]:
    """Return what bash offers for the last word of *line*, in *folder*."""
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    asked = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _tfmemtop; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    program = "compopt() { :; }\n" + script_for("bash") + asked
    done = ran(["bash", "--norc", "-c", program], cwd=folder)
    assert done.stderr == ""
    return set(done.stdout.splitlines()) - {""}


SHELLS = pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("tfmemtop ", COMMANDS),
        ("tfmemtop co", {"compare", "completion", "convert"}),
        ("tfmemtop --allocator ", {"bfc", "cuda_malloc_async", "script"}),
        ("tfmemtop record -o ", {"my run.jsonl"}),
        ("tfmemtop replay ", {"my run.jsonl"}),
        ("tfmemtop help out-", {"out-of-memory"}),
        ("tfmemtop completion ", {"bash", "zsh", "fish", "tcsh"}),
        ("tfmemtop -- python train.py --gr", set()),
    ],
)


@SHELLS
def test_bash_offers_what_the_command_line_takes(line: str, offered: set[str], tmp_path: Path) -> None:
    (tmp_path / "my run.jsonl").touch()
    assert in_bash(line, tmp_path) == offered


@pytest.mark.parametrize("name", ["fit", "record"])
def test_bash_offers_every_option_of_a_command_and_no_other(name: str, tmp_path: Path) -> None:
    assert in_bash(f"tfmemtop {name} -", tmp_path) == set(parsers()[name].load().flags())


def test_a_program_is_offered_after_the_dashes(tmp_path: Path) -> None:
    assert "printf" in in_bash("tfmemtop --growth on -- print", tmp_path)


def test_attach_is_offered_the_sessions_that_run(start: Start, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(PROGRAM).parent}:{os.environ['PATH']}")
    subprocess.run([PROGRAM, "record", "--", "true"], check=True)
    (past,) = kept_recordings()
    going = start("--", "sh", "-c", "echo up; read answer")
    going.expect("up")
    (session,) = own_sessions()
    offered = in_bash("tfmemtop attach ", home)
    assert session.id in offered and past not in offered


def pressed_tab(shell: list[str], script: Path, begin: str, line: str, expected: str) -> None:
    """Type *line* and a Tab into a real *shell*, and wait until it shows *expected*."""
    environment = {**os.environ, "TERM": "vt100", "HOME": str(script.parent), "PS1": "$ "}
    # So wide that nothing is wrapped.
    child = on_pty(*shell, size=(400, 24), env=environment, cwd=script.parent)
    child.sendline(f"{begin}; echo rea''dy")  # the shell's echo of this line does not contain "ready"
    child.expect("ready")
    child.send(line + "\t")
    child.expect(re.escape(expected))
    end(child)


def test_tab_in_a_real_bash_completes(tmp_path: Path) -> None:
    script = tmp_path / "made"
    script.write_text(script_for("bash"))
    (tmp_path / "my run.jsonl").write_text("")
    source = f"bind 'set enable-bracketed-paste off'; source {script}"
    pressed_tab(["bash", "--norc", "-i"], script, source, "tfmemtop rec", "tfmemtop record ")
    pressed_tab(["bash", "--norc", "-i"], script, source, "tfmemtop replay my", "tfmemtop replay my\\ run.jsonl ")
    pressed_tab(["bash", "--norc", "-i"], script, source, "tfmemtop -- cat my", "cat my\\ run.jsonl ")


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
def test_tab_in_a_real_zsh_completes(tmp_path: Path) -> None:
    script = tmp_path / "made"
    script.write_text(script_for("zsh"))
    (tmp_path / "my run.jsonl").write_text("")
    source = f"autoload -U compinit; compinit -u; source {script}"
    for line, expected in {
        "tfmemtop rec": "tfmemtop record",
        "tfmemtop --allocator cu": "--allocator cuda_malloc_async",
        "tfmemtop fit --tri": "fit --tries",
        "tfmemtop help out-": "help out-of-memory",
        "tfmemtop replay my": "replay my\\ run.jsonl",
        "tfmemtop -- cat my": "cat my\\ run.jsonl",
    }.items():
        pressed_tab(["zsh", "-f", "-i"], script, source, line, expected)


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("tfmemtop co", {"compare", "completion", "convert"}),
        ("tfmemtop --allocator cu", {"cuda_malloc_async"}),
        ("tfmemtop replay my", {"my run.jsonl"}),
        ("tfmemtop help out-", {"out-of-memory"}),
        ("tfmemtop -- cat my", {"my run.jsonl"}),
    ],
)
def test_a_real_fish_completes(line: str, offered: set[str], tmp_path: Path) -> None:
    script = tmp_path / "made"
    script.write_text(script_for("fish"))
    (tmp_path / "my run.jsonl").write_text("")
    program = f"source {script}; complete -C '{line}'"
    done = ran(["fish", "--no-config", "-c", program], cwd=tmp_path)
    assert done.stderr == ""
    assert {entry.partition("\t")[0] for entry in done.stdout.splitlines()} == offered


@pytest.mark.skipif(not shutil.which("tcsh"), reason="tcsh is not installed")
def test_a_real_tcsh_completes(tmp_path: Path) -> None:
    script = tmp_path / "made"
    script.write_text(script_for("tcsh"))
    pressed_tab(["tcsh", "-f"], script, f"set autolist; source {script}", "tfmemtop rec", "tfmemtop record")
