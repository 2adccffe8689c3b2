"""The machine's own figures agree with those of psutil."""

import hashlib
import os
import time

import psutil

from tfmemtop.engine.sources.machine import Processors, available_memory, boot_time


def test_start_and_memory_are_psutils() -> None:
    assert boot_time() == psutil.boot_time()
    told = psutil.virtual_memory()
    assert abs(available_memory() - told.available) < told.total / 10


def test_the_processors_are_as_busy_as_they_are_kept() -> None:
    processors = Processors()
    cores, until = os.cpu_count() or 1, time.process_time() + 0.3
    begun = time.monotonic()
    while time.process_time() < until:
        hashlib.sha256(bytes(100_000))
    kept = 100 * 0.3 / (time.monotonic() - begun) / cores
    assert kept * 0.7 <= processors.busy_percent() <= 100
    assert processors.busy_percent() <= 100
