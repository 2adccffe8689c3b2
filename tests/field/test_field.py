"""What ``why`` says about twelve of the cases, on real TensorFlow. ``python -m tests.field`` runs all of them."""

from pathlib import Path

import pytest

from tests import sparing
from tests.field.cases import CASES, Case
from tests.field.judging import tried

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("case", [case for case in CASES if case.in_ci], ids=lambda case: case.name)
def test_the_report_is_right(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(sparing.FOLDER))
    assert tried(case, tmp_path, mended=False).misses == ()
