"""What every test of a screen checks beside its own subject."""

import pytest
from rich.cells import cell_len

from tests.ui.shown import rows
from tfmemtop.ui.draw.lines import Line, Panel


@pytest.fixture(autouse=True)
def every_line_fits_its_panel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the test if a panel makes a line that is wider than the panel: a user would not see its end."""
    built = Panel._built

    def checked(panel: Panel, width: int, height: int) -> list[Line]:
        lines = built(panel, width, height)
        too_wide = [text for text in rows(lines) if cell_len(text.rstrip()) > width]
        assert not too_wide, f"{type(panel).__name__}, {width} cells: {too_wide}"
        return lines

    monkeypatch.setattr(Panel, "_built", checked)
