"""For all tests: what tfmemtop keeps for its user, it keeps elsewhere; what is searched is found each time."""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import settings

from tests import kinds
from tests.building import start
from tests.kinds import pytest_runtest_call, pytest_runtest_setup
from tfmemtop.words import failure

__all__ = ["pytest_runtest_call", "pytest_runtest_setup"]

# The same examples each time, and no failure because the machine was busy. ``--hypothesis-profile=default`` searches.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")

# Where tests run in the background or under nohup, these are ignored, and would be in every process that they start.
for number, usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGQUIT, signal.SIG_DFL),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of these tests have in common."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session", autouse=True)
def built_meanwhile(request: pytest.FixtureRequest, cache: Path) -> Iterator[None]:
    """What nearly all tests of TensorFlow load is built beside the first of them, at the tests' own priority.

    Else the first engine would build it, at the lowest, which may take minutes beside the tests of other workers.
    """
    wanted = any(
        item.get_closest_marker("tensorflow") and not item.nodeid.startswith("tests/agent/")
        for item in request.session.items
    )
    building = None
    if wanted and os.environ.get("PYTEST_XDIST_WORKER") == "gw0":
        building = start(cache, "probe", "replay")
    kinds.forget()
    yield
    if building is not None:
        building.wait()


@pytest.fixture(scope="session", autouse=True)
def cache(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache of their own, in which the probe is built once for all tests; and a folder for what sessions leave."""
    folder = shared / "cache"
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.setenv("XDG_CONFIG_HOME", str(folder / "no-configuration"))
        yield folder


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "fails_on_purpose: a part fails in this test, to see that the others live on")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what each costs; leave out what needs a GPU, and the large forms, unless ``-m`` names them."""
    kinds.mark(items)
    asked = config.option.markexpr
    left = {item for item in items if _is_by_hand(item, asked)}
    config.hook.pytest_deselected(items=[item for item in items if item in left])
    items[:] = [item for item in items if item not in left]


def _is_by_hand(item: pytest.Item, asked: str) -> bool:
    whole = item.get_closest_marker("whole") is not None
    return (kinds.for_gpus(item) and "gpu" not in asked) or (whole and "whole" not in asked)


def pytest_collection_finish() -> None:
    # Thousands of tests and their modules stay to the end. No search for garbage needs to go through them again.
    gc.freeze()
    kinds.watch()


@lru_cache(maxsize=1)
def _describing(_modules: int) -> list[ModuleType]:
    """The modules that describe failures, of so many that are loaded."""
    ours = [module for name, module in list(sys.modules.items()) if name.startswith("tfmemtop.")]
    found = [module for module in ours if getattr(module, "describe", None) is failure.describe]
    return [module for module in found if module is not failure]


@pytest.fixture(autouse=True)
def nothing_fails_quietly(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A panel, a rule or an event that fails costs its user one line; here it costs the test."""
    failed: list[str] = []

    def noted(error: BaseException) -> str:
        failed.append(failure.describe(error))
        return failed[-1]

    for module in _describing(len(sys.modules)):
        monkeypatch.setattr(module, "describe", noted)
    yield
    if request.node.get_closest_marker("fails_on_purpose") is None:
        assert not failed
