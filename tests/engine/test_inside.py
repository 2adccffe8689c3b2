"""Which sessions may have their engine in the process of their screen."""

import msgspec
import pytest

from tfmemtop.engine.inside import EngineInside
from tfmemtop.engine.process.launch import Export, Kernel, Launch

WATCHES = Launch(argv=[], cwd="/", environment={})


@pytest.mark.parametrize(
    "more",
    [
        {"argv": ["true"]},
        {"attach": 1},
        {"kernel": Kernel(pid=1, connection="/none", shared="")},
        {"record": "/none"},
        {"export": Export()},
    ],
)
def test_one_that_outlives_its_screen_may_not(more: dict[str, object]) -> None:
    EngineInside(WATCHES)
    with pytest.raises(AssertionError):
        EngineInside(msgspec.structs.replace(WATCHES, **more))
