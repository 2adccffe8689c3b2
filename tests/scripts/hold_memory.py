"""Use the GPU, print its own figures, and hold still for a while.

The script prints one line of JSON: the bytes that TensorFlow's public API and NVML report for this process, and
between which times (seconds since the epoch) they hold. Arguments: MiB to keep, MiB at the peak, seconds to hold
still.
"""

import json
import os
import sys
import time

import tensorflow as tf

keep_mib, peak_mib, hold_s = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
for gpu in tf.config.list_physical_devices("GPU") if "--growth" in sys.argv else []:
    tf.config.experimental.set_memory_growth(gpu, True)
if "--split" in sys.argv:
    first = tf.config.list_physical_devices("GPU")[0]
    halves = [tf.config.LogicalDeviceConfiguration(memory_limit=1024)] * 2
    tf.config.set_logical_device_configuration(first, halves)


def used_by_me() -> "int | None":
    """Return NVML's process total over all GPUs, in bytes, or None if NVML does not report it."""
    import pynvml

    pynvml.nvmlInit()
    total = 0
    for index in range(pynvml.nvmlDeviceGetCount()):
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle):
            if process.pid == os.getpid():
                if process.usedGpuMemory is None:
                    return None
                total += process.usedGpuMemory
    return total


kept = []
devices = tf.config.list_logical_devices("GPU")
for device in devices:
    with tf.device(device.name):
        peak = tf.zeros([peak_mib, 256, 1024])
        del peak
        kept.append(tf.zeros([keep_mib, 256, 1024]))
        weights = tf.random.normal([1024, 1024])
        print("sum", float(tf.reduce_sum(tf.matmul(weights, weights)) * 0), file=sys.stderr)
figures = {
    device.name.split("device:")[-1]: tf.config.experimental.get_memory_info(device.name.split("device:")[-1])
    for device in devices
}
since = time.time()
time.sleep(hold_s)
print(json.dumps({"since": since, "until": time.time(), "figures": figures, "process_total": used_by_me()}))
