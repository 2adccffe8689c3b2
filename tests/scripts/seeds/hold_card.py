"""Another process on the card. It holds a share of the card in percent (first argument) for seconds (second)."""

import ctypes
import sys
import time

share, seconds = float(sys.argv[1]), float(sys.argv[2])
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError as error:
    sys.exit(f"no CUDA driver: {error}")
device, context, address = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
free, total = ctypes.c_size_t(), ctypes.c_size_t()
for name, arguments in (
    ("cuInit", (0,)),
    ("cuDeviceGet", (ctypes.byref(device), 0)),
    ("cuDevicePrimaryCtxRetain", (ctypes.byref(context), device)),
    ("cuCtxSetCurrent", (context,)),
    ("cuMemGetInfo_v2", (ctypes.byref(free), ctypes.byref(total))),
):
    if code := getattr(cuda, name)(*arguments):
        sys.exit(f"{name} failed with error {code}")
size = int(total.value * share / 100)
if code := cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)):
    sys.exit(f"cuMemAlloc failed with error {code}")
print(f"holding still with {size} bytes", file=sys.stderr, flush=True)
time.sleep(seconds)
