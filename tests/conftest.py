"""For all tests: what tfmemtop keeps for its user, it keeps elsewhere; what is searched is found each time."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples each time, and no failure because the machine was busy. ``--hypothesis-profile=default`` searches.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")

# Where tests run in the background, Ctrl-C is ignored, and would be in every process that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache of its own, in which the probe is built once for all tests."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder
