"""The file of options that the user has set for every run."""

from pathlib import Path

import pytest

from tfmemtop.cli import Refusal
from tfmemtop.cli.main import main
from tfmemtop.cli.parser import parse


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of options, in a folder of the test's own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "tfmemtop").mkdir()
    return tmp_path / "tfmemtop" / "config.toml"


def options(line: str) -> dict[str, object]:
    return vars(parse(line.split()).arguments)


def test_what_the_file_says_holds_until_it_is_typed_otherwise(configured: Path) -> None:
    configured.write_text('growth = "on"\nmemory-limit = "50%"\ninterval = 2\nreadonly = true\nascii = false\n')
    found = options("-- true")
    assert (found["growth"], found["memory_limit"], found["interval"], found["readonly"]) == ("on", "50%", 2.0, True)
    assert not found.get("ascii")
    found = options("--growth script --interval 0.1 -- true")
    assert (found["growth"], found["memory_limit"], found["interval"]) == ("script", "50%", 0.1)


def test_each_command_takes_what_it_has(configured: Path) -> None:
    configured.write_text('growth = "on"\nmemory-limit = "1G"\nreadonly = true\non-end = "true"\n')
    assert options("record -o file -- true")["on_end"] == "true"
    assert "readonly" not in options("record -o file -- true")
    assert options("fit -- true")["growth"] == "on" and "memory_limit" not in options("fit -- true")
    assert options("attach")["readonly"] is True
    watching = options("")  # nothing is run
    assert watching["readonly"] is True and "growth" not in watching and "on_end" not in watching
    assert options("demo")["growth"] == "on"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('grwth = "on"', "there is no option 'grwth'; see tfmemtop help config"),
        ('record = "file"', "there is no option 'record'; see tfmemtop help config"),
        ('growth = "maybe"', "--growth: invalid choice: 'maybe'"),
        ("growth = true", 'growth has to be a number, or text in quotes such as "4G"'),
        ('ascii = "yes"', "ascii has to be true or false"),
        ("interval = 0", "--interval: '0' is not a number of seconds from 0.02 to 60"),
        ("growth = ", "Invalid value"),
        ("[run]", "there is no option 'run'"),
        ("x = '" + "y" * 70000 + "'", "larger than 64 KiB"),
        ("\udcff", "can't decode byte 0xff"),
    ],
)
def test_a_mistake_is_refused_in_one_line_that_names_the_file(configured: Path, text: str, said: str) -> None:
    configured.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(Refusal) as refused:
        parse(["--", "true"])
    assert str(refused.value).startswith(f"{configured}: ") and said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_settings_count_where_no_session_can_be_kept(
    configured: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    configured.write_text('growth = "on"\n')
    monkeypatch.setenv("XDG_STATE_HOME", str(configured))
    assert options("-- true")["growth"] == "on"
    assert capsys.readouterr().err == f"tfmemtop: {configured}/tfmemtop: Not a directory; kept sessions are left out\n"


def test_help_is_shown_whatever_the_file_says(configured: Path) -> None:
    configured.write_text("nonsense")
    for line in ("--help", "help", "record --help", "--version"):
        assert main(line.split()) == 0
