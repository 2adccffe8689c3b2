"""The screen of a run on JAX or PyTorch: which keys set something for it, and what the other views say."""

import msgspec
import pytest

from tests import streams as s
from tests.findings.situations import begin
from tests.findings.test_frameworks import framework, hook, jax
from tests.streams import GIB
from tests.ui.shown import app, press, running, source_of
from tfmemtop import events
from tfmemtop.frameworks import FrameworkName, UsedFramework
from tfmemtop.settings import Settings
from tfmemtop.ui.app import TfmemtopApp


def notified(shown: TfmemtopApp) -> str:
    """Return all that the user was notified of."""
    return " ".join(notification.message for notification in shown._notifications)


ON_JAX = [*begin(), hook(JAX="0.10.2"), jax(5.0, 105 * GIB, GIB)]


def on_torch(version: str) -> list[events.Event]:
    return [*begin(), hook(PYTORCH=version), framework(5.0, FrameworkName.PYTORCH, 2 * GIB, GIB)]


async def test_growth_limit_and_allocator_are_set_for_jax_by_the_same_keys() -> None:
    async with running(app(ON_JAX)) as (pilot, shown):
        assert "next: growth on" in await press(pilot, "G")
        assert "JAX: passed on as a share of the smallest GPU that the run sees" in await press(pilot, "L")
        assert "limit 35.0 GiB" in await press(pilot, "ctrl+u", *"25%", "enter")
        assert "bfc" in await press(pilot, "A")
        await press(pilot, "R", "r")
        (command,) = [c for c in source_of(shown).sent if isinstance(c, events.Relaunch)]
        used = (UsedFramework(FrameworkName.JAX, "0.10.2"),)
        assert command.settings == Settings(growth="on", memory_limit=35 * GIB, allocator="bfc", frameworks=used)


async def test_a_limit_is_for_a_newer_pytorch_and_growth_for_none() -> None:
    async with running(app(on_torch("2.13.0"))) as (pilot, shown):
        await press(pilot, "G")
        assert notified(shown) == "Not for PyTorch: its pool always grows."
        assert "next: limit 35.0 GiB" in await press(pilot, "L", "ctrl+u", *"25%", "enter")
    async with running(app(on_torch("2.8.0"))) as (pilot, shown):
        assert "Memory limit of the next run" not in await press(pilot, "L")
        assert "torch.cuda.set_per_process_memory_fraction" in notified(shown)


@pytest.mark.parametrize("key", ["M", "B", "X"])
async def test_what_is_of_tensorflows_pools_only_is_said_in_one_line(key: str) -> None:
    async with running(app(ON_JAX)) as (pilot, _):
        assert "his run uses JAX; map, holders and predictions are of TensorFlow's pools only" in await press(
            pilot, key
        )


@pytest.mark.parametrize(("key", "told"), [("D", "Not for JAX: XLA's report"), ("F", "Not for JAX: search")])
async def test_what_needs_tensorflow_is_refused(key: str, told: str) -> None:
    async with running(app(ON_JAX)) as (pilot, shown):
        await press(pilot, key)
        assert told in notified(shown)


async def test_a_run_of_both_has_every_key_and_both_get_the_setting() -> None:
    both = [*ON_JAX, msgspec.structs.replace(hook(6.0, JAX="0.10.2"), tensorflow="2.21.0"), s.effective(6.1, 100)]
    async with running(app(both)) as (pilot, shown):
        assert "next: XLA's report" in await press(pilot, "D")
        await press(pilot, "R", "r")
        (command,) = [c for c in source_of(shown).sent if isinstance(c, events.Relaunch)]
        assert [one.name for one in command.settings.frameworks] == [FrameworkName.JAX]


async def test_on_the_cpu_there_is_nothing_to_set_for_them() -> None:
    alone = [s.session(), s.run(), s.process(0.6, 100), hook(JAX="0.10.2")]
    async with running(app(alone)) as (pilot, shown):
        assert "Memory limit of the next run" not in await press(pilot, "L")
        assert notified(shown) == "No GPU is known here, so there is nothing to set for JAX."


async def test_the_details_name_the_framework_its_version_and_its_settings() -> None:
    growing = jax(6.0, 3 * GIB, GIB, settings={"XLA_PYTHON_CLIENT_PREALLOCATE": "false"})
    async with running(app([*ON_JAX, growing]), (160, 60)) as (pilot, _):
        told = await press(pilot, "enter")
        assert "JAX           0.10.2" in told and "still being imported" not in told
        assert "JAX:0         XLA_PYTHON_CLIENT_PREALLOCATE=false" in told
