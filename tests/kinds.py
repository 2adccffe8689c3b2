"""Markers for the cost of a test: ``programs`` if it starts any, ``screens`` if it shows any; most others: ``quick``.

A test without the marker that it needs fails.

A marker comes with a fixture of :data:`FIXTURES`, with a file (``pytestmark``) or with a test; coroutines of
``tests/ui`` are marked ``screens``, and tests of ``tests/gpu`` without a marker ``gpu``. A program that is started once
for several tests is noticed only in the first of them: ``-m quick`` finds those of the others.
"""

import functools
import inspect
import sys
from collections.abc import Generator
from typing import Any

import pytest

FIXTURES = frozenset({"browsers", "engines", "home", "jupyter", "locales", "monitored", "slurm", "start"})
"""Fixtures that start programs, or that tests use which do so. A test that uses one is marked ``programs``."""

STARTS = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"})
"""The audit events that Python raises when a program is started."""

COVERED = "tests/events/", "tests/findings/", "tests/recording/", "tests/state/"
"""The tests of the rooms without input and output, in which coverage is measured."""

IN_TENSORFLOWS_PROCESS = ("tests/agent/", "tests/probe/", "tests/tools/corpus/")

ANY_COST = ("tensorflow", "gpu", "gpus2")
"""With these markers a test may do everything. With ``programs`` it may also show screens."""

COSTLY = frozenset({*ANY_COST, "programs", "screens", "long"})
"""A test with none of these markers is ``quick``."""

_noticed: set[str] = set()


def mark(items: list[pytest.Item]) -> None:
    """Mark tests of TensorFlow by folder, others by their fixtures or as coroutines, and the rest ``quick``.

    Coverage is measured in the quick tests of :data:`COVERED` alone: it sees nothing of the programs that others start,
    and it doubles the time of a test.
    """
    for item in items:
        if item.nodeid.startswith(IN_TENSORFLOWS_PROCESS):
            item.add_marker("tensorflow")
        if FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("programs")
        if item.nodeid.startswith("tests/ui/") and inspect.iscoroutinefunction(getattr(item, "function", None)):
            item.add_marker("screens")
        if for_gpus(item) and item.get_closest_marker("gpus2") is None:
            item.add_marker("gpu")
        quick = not COSTLY.intersection(mark.name for mark in item.iter_markers())
        if quick:
            item.add_marker("quick")
        if not quick or not item.nodeid.startswith(COVERED):
            item.add_marker("no_cover")


def for_gpus(item: pytest.Item) -> bool:
    """Return whether the test needs an NVIDIA GPU."""
    return item.nodeid.startswith("tests/gpu/")


def watch() -> None:
    """Notice programs and screens from now on."""
    sys.addaudithook(_hear)
    if (textual := sys.modules.get("textual.app")) is not None:
        begin = textual.App.__init__

        @functools.wraps(begin)
        def noticed(*arguments: Any, **options: Any) -> None:
            _noticed.add("screens")
            begin(*arguments, **options)

        textual.App.__init__ = noticed


def forget() -> None:
    """Drop everything that was noticed so far, since it does not belong to the next test."""
    _noticed.clear()


def _hear(event: str, _: tuple[Any, ...]) -> None:
    if event in STARTS:
        _noticed.add("programs")


def _check(item: pytest.Item) -> None:
    markers = {mark.name for mark in item.iter_markers()}
    for lacking in sorted(_noticed):
        if not markers & {*ANY_COST, "programs", lacking}:
            pytest.fail(f"{item.nodeid}: it starts a program or shows a screen; mark it `{lacking}`", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    forget()
    yield
    _check(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    yield
    _check(item)
