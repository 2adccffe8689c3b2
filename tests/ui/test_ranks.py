"""The first line of the screen names the rank that it shows, if there are several."""

import msgspec
import pytest

from tests import streams as s
from tests.ui.shown import app, drawn, text_of
from tfmemtop import events
from tfmemtop.placement import Placement

THIRD = Placement(job="812", rank=3, ranks=64, local_rank=1, host="node2", source="slurm")
ALONE = msgspec.structs.replace(THIRD, rank=0, ranks=1)


def placed(place: Placement | None) -> list[events.Event]:
    return [msgspec.structs.replace(s.session(), placement=place), s.run(), s.process(0.2, 100)]


@pytest.mark.screens
@pytest.mark.parametrize(
    ("place", "width", "told"),
    [
        (THIRD, 160, "rank 3 of 64, job 812, on node2"),
        (THIRD, 60, "rank 3/64"),
        (ALONE, 160, None),
        (None, 160, None),
    ],
)
async def test_the_first_line_says_which_rank_it_is(place: Placement | None, width: int, told: str | None) -> None:
    async with app(placed(place)).run_test(size=(width, 24)) as pilot:
        line = text_of(await drawn(pilot)).splitlines()[0]
        assert ("rank" in line) == (told is not None)
        assert (told or "run 1") in line
        assert "train.py" in line and len(line) <= width
