"""The table of layouts agrees with TensorFlow's own headers."""

from pathlib import Path

import pytest

from tests.probe.layouts import compiled
from tfmemtop.agent.layouts import layout_of


@pytest.mark.whole  # its small form: the figures of test_direct.py
def test_the_row_of_this_tensorflow_is_what_the_compiler_says(tensorflow: tuple[Path, str]) -> None:
    folder, version = tensorflow
    assert layout_of(version) == compiled(folder)


def test_what_is_not_in_the_table_is_not_guessed() -> None:
    assert layout_of("2.22.0-rc0") is not None
    assert [layout_of(version) for version in ("2.15.1", "2.23.0", "2.2.0", "3.21.0", "unknown", "")] == [None] * 6
