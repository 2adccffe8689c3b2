"""CUDA memory is taken beside TensorFlow in the same process, as CuPy does; MiB as the first argument (2048)."""

import ctypes
import sys

import tensorflow as tf
from seen import process_total, tell

size = (int(sys.argv[1]) if len(sys.argv) > 1 else 2048) * 2**20
gpus = tf.config.list_physical_devices("GPU")
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
weights = tf.random.normal([1024, 1024])
tf.matmul(weights, weights)
before = process_total()


def take(count: int) -> int:
    """Allocate *count* bytes on CUDA's first device, in the context that TensorFlow uses too. Return the address."""
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context, address = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    for name, arguments in (
        ("cuInit", (0,)),
        ("cuDeviceGet", (ctypes.byref(device), 0)),
        ("cuDevicePrimaryCtxRetain", (ctypes.byref(context), device)),
        ("cuCtxSetCurrent", (context,)),
        ("cuMemAlloc_v2", (ctypes.byref(address), ctypes.c_size_t(count))),
    ):
        code = getattr(cuda, name)(*arguments)
        if code:
            raise RuntimeError(f"{name} failed with error {code}")
    return address.value


taken = take(size) if gpus else 0
tell(gpus=len(gpus), beside=size if taken else 0, process_total_before=before)
