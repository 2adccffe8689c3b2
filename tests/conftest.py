"""Fixtures and settings for all tests.

The files that tfmemtop keeps for its user go to other folders, and Hypothesis tries the same examples in each run.
"""

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

from tests import building, kinds
from tests.engines import engines
from tests.hooked import forks, monitor, script, tensorflow, tensorflow_bare, tensorflow_folder, tensorflow_hooked
from tests.kinds import pytest_runtest_call, pytest_runtest_setup
from tests.notebook import jupyter
from tests.starting import home, start
from tfmemtop import failure

__all__ = [
    "engines",
    "forks",
    "home",
    "jupyter",
    "monitor",
    "pytest_runtest_call",
    "pytest_runtest_setup",
    "script",
    "start",
    "tensorflow",
    "tensorflow_bare",
    "tensorflow_folder",
    "tensorflow_hooked",
]

# The same examples each time, and no failure because the machine is busy. ``--hypothesis-profile=default`` varies them,
# and tries more.
settings.register_profile("steady", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("steady")

# Where this is set, each worker and each process that the tests start would compile the same modules anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# If tests run in the background or under nohup, these signals are ignored. Every process that the tests start would
# then ignore them, too.
for number, usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGQUIT, signal.SIG_DFL),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all workers of these tests share."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session", autouse=True)
def built_meanwhile(request: pytest.FixtureRequest, cache: Path) -> Iterator[None]:
    """Build what nearly all tests of TensorFlow load, while the first of them run, at the tests' own priority.

    Otherwise the first engine would build it at the lowest priority. While other workers run tests, this may take
    minutes.
    """
    wanted = any(
        item.get_closest_marker("tensorflow") and not item.nodeid.startswith("tests/agent/")
        for item in request.session.items
    )
    builds = None
    if wanted and os.environ.get("PYTEST_XDIST_WORKER") == "gw0":
        builds = building.start(cache, "probe", "addresses", "replay")
    kinds.forget()
    yield
    if builds is not None:
        builds.wait()


@pytest.fixture(scope="session", autouse=True)
def cache(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Set a cache for the tests, in which the probe is built once for all of them, and a folder for sessions' files."""
    folder = shared / "cache"
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.setenv("XDG_CONFIG_HOME", str(folder / "no-configuration"))
        yield folder


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "fails_on_purpose: a part fails in this test, to see that the others live on")
    if hasattr(config, "workerinput") and "coverage" in sys.modules:
        # pytest-cov 7.1 measures a worker twice: as if it were the main process, too. ``no_cover`` ends only one of the
        # two, and each test would take several times as long.
        first = sys.modules["coverage"].Coverage.current()
        if first is not None:
            first.stop()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test by its cost. Leave out those that need a GPU, unless ``-m`` names a marker of theirs."""
    kinds.mark(items)
    left = {item for item in items if kinds.for_gpus(item)} if "gpu" not in config.option.markexpr else set()
    config.hook.pytest_deselected(items=[item for item in items if item in left])
    items[:] = [item for item in items if item not in left]


def pytest_collection_finish() -> None:
    # Thousands of tests and their modules exist to the end. The garbage collector need not go through them again.
    gc.freeze()
    kinds.watch()


@lru_cache(maxsize=1)
def _describing(_modules: int) -> list[ModuleType]:
    """Return the modules that describe failures. The argument is the number of loaded modules, as key of the cache."""
    ours = [module for name, module in list(sys.modules.items()) if name.startswith("tfmemtop.")]
    found = [module for module in ours if getattr(module, "describe", None) is failure.describe]
    return [module for module in found if module is not failure]


@pytest.fixture(autouse=True)
def nothing_fails_quietly(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail the test if a panel, a rule or an event fails. A user would only get one line about it."""
    failed: list[str] = []

    def noted(error: BaseException) -> str:
        failed.append(failure.describe(error))
        return failed[-1]

    for module in _describing(len(sys.modules)):
        monkeypatch.setattr(module, "describe", noted)
    yield
    if request.node.get_closest_marker("fails_on_purpose") is None:
        assert not failed
