"""A limit as a share of a total, and limits that are refused: the same for command line, screen and engine."""

import pytest

from tfmemtop.findings.starting import unusable
from tfmemtop.limits import HostOwner, Machine, TooMuch, check, needs_gpus, parse_limit
from tfmemtop.settings import Settings

GIB = 1 << 30
TWO_GPUS = Machine(uuids=["GPU-a", "GPU-b"], totals=[80 * GIB, 40 * GIB], host_memory=64 * GIB)
ONE_UNKNOWN = Machine(uuids=["GPU-a", "GPU-b"], totals=[80 * GIB, None], host_memory=64 * GIB)
CONTAINER = Machine(host_memory=16 * GIB, host_memory_of=HostOwner.CONTAINER)


@pytest.mark.parametrize(
    ("machine", "gpus", "whole"),
    [
        (TWO_GPUS, None, (40 * GIB, 1)),
        (TWO_GPUS, (0,), (80 * GIB, 0)),
        (TWO_GPUS, (), (None, None)),
        (TWO_GPUS, (7,), (None, None)),
        (ONE_UNKNOWN, None, (80 * GIB, 0)),
        (ONE_UNKNOWN, (1,), (None, None)),
        (CONTAINER, None, (16 * GIB, HostOwner.CONTAINER)),
        (Machine(), None, (None, HostOwner.MACHINE)),
    ],
)
def test_a_share_is_one_of_the_smallest_gpu_that_the_run_sees(
    machine: Machine, gpus: tuple[int, ...] | None, whole: tuple[int | None, HostOwner | int | None]
) -> None:
    assert machine.whole(Settings(gpus=gpus)) == whole


def test_a_limit_is_rounded_down_to_mib_and_fits_the_memory() -> None:
    whole = TWO_GPUS.whole(Settings())
    assert parse_limit("50%", whole) == 20 * GIB
    assert parse_limit("40G", whole) == 40 * GIB
    assert parse_limit("1.9M", whole) == 1 << 20  # rounded down: TensorFlow counts limits in MiB
    for text, said in (("41G", "41G is more than GPU 1 has, 40.0 GiB"), ("1000K", "1000K is less than 1 MiB")):
        with pytest.raises(ValueError) as caught:
            parse_limit(text, whole)
        assert unusable(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("settings", "machine", "said"),
    [
        (Settings(memory_limit=41 * GIB), TWO_GPUS, "41.0 GiB is more than GPU 1 has"),
        (Settings(memory_limit=17 * GIB), CONTAINER, "17.0 GiB is more than this container has"),
        (Settings(cpu_pool=65 * GIB), TWO_GPUS, "65.0 GiB is more than this machine has"),
    ],
)
def test_settings_that_do_not_fit_are_refused_in_one_sentence(settings: Settings, machine: Machine, said: str) -> None:
    with pytest.raises(TooMuch) as caught:
        check(settings, machine)
    assert unusable(caught.value).startswith(said)


def test_settings_that_fit_pass() -> None:
    check(Settings(memory_limit=80 * GIB, gpus=(0,), cpu_pool=GIB), TWO_GPUS)
    check(Settings(memory_limit=80 * GIB, gpus=(1,)), ONE_UNKNOWN)  # the size of GPU 1 is not known


def test_the_driver_is_asked_only_for_what_needs_gpus() -> None:
    assert not needs_gpus(Settings(growth="on", cpu_pool=GIB, environment={"A": "b"}))
    assert all(map(needs_gpus, (Settings(gpus=()), Settings(memory_limit=GIB), Settings(allocator="bfc"))))
