"""The figures that a script has of its own memory: TensorFlow's public ones, and NVML's where there is a driver."""

import json
import os
import sys
import time
from pathlib import Path

import tensorflow as tf


def process_total() -> "int | None":
    """Return the bytes that NVML counts for this process on all GPUs.

    Returns ``None`` without a driver, or if the driver does not report them.
    """
    try:
        import pynvml

        pynvml.nvmlInit()
        shares = [
            process.usedGpuMemory
            for index in range(pynvml.nvmlDeviceGetCount())
            for process in pynvml.nvmlDeviceGetComputeRunningProcesses(pynvml.nvmlDeviceGetHandleByIndex(index))
            if process.pid == os.getpid()
        ]
    except Exception as error:  # no module, no driver, a driver that does not fit: all mean not known
        print(f"process total not known: {error}", file=sys.stderr)
        return None
    return None if not shares or None in shares else sum(shares)


def figures() -> "dict[str, dict[str, int]]":
    """Return ``get_memory_info`` of each logical GPU: ``current`` and ``peak``, in bytes."""
    names = [device.name.split("device:")[-1] for device in tf.config.list_logical_devices("GPU")]
    return {name: dict(tf.config.experimental.get_memory_info(name)) for name in names}


def tell(hold_s: float = 3.0, **facts: object) -> None:
    """Hold still for *hold_s* seconds, so that the process can be read from outside.

    Then print one line of JSON with *facts* and the figures.
    """
    print("holding still", file=sys.stderr, flush=True)
    since = time.time()
    time.sleep(hold_s)
    told = {
        "script": Path(sys.argv[0]).stem,
        "figures": figures(),
        "process_total": process_total(),
        "since": since,
        "until": time.time(),
        **facts,
    }
    print(json.dumps(told), flush=True)
