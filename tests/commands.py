"""Runs commands of tfmemtop within the tests' own process."""

import pytest

from tfmemtop.cli.main import main


def printed_by(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Run the command *words*, which must succeed. Return what it prints."""
    capsys.readouterr()
    assert main([*words]) == 0
    return capsys.readouterr().out


def refused_by(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Run the command *words*, which must be refused with exit code 2. Return what is said about it."""
    capsys.readouterr()
    assert main([*words]) == 2
    return capsys.readouterr().err
