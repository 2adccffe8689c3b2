"""Stand-ins for JAX, PyTorch, CuPy, RMM and CUDA's driver: they answer as their documentation and source say.

They are for a machine without a GPU. Each has the functions and the data that the reader uses, under the real names. A
function that initialises a device ends the script, and so does a figure that is read before that.
"""

import subprocess
from pathlib import Path

MIB = 1 << 20

UUID = "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"

JAX_STATS = {
    **{"num_allocs": 3, "bytes_in_use": 1024 * MIB, "peak_bytes_in_use": 1025 * MIB, "largest_alloc_size": 1024 * MIB},
    **{"bytes_limit": 63800 * MIB, "bytes_reserved": 0, "peak_bytes_reserved": 0, "largest_free_block_bytes": 0},
    **{"pool_bytes": 1026 * MIB, "peak_pool_bytes": 1026 * MIB},
}
"""With ``XLA_PYTHON_CLIENT_PREALLOCATE=false``."""

FIGURES: dict[str, dict[str, int | None]] = {
    "JAX:0": {"in_use": 1024 * MIB, "held": 1026 * MIB, "peak": 1025 * MIB, "limit": 63800 * MIB},
    "PyTorch:0": {"in_use": 512 * MIB, "held": 514 * MIB, "peak": 513 * MIB, "limit": None},
    "CuPy:0": {"in_use": 255 * MIB, "held": 256 * MIB, "peak": None, "limit": None},
    "RMM:0": {"in_use": 60 * MIB, "held": 64 * MIB, "peak": 62 * MIB, "limit": None},
}
"""What the readers must make of the figures, by the name of the device."""

_JAX = f"""
_backends = {{}}

def backends():
    raise SystemExit("JAX initialised")

class Device:
    local_hardware_id = 0

    def memory_stats(self):
        return {JAX_STATS}

class Bare(Device):
    def memory_stats(self):
        raise RuntimeError("UNIMPLEMENTED: GetAllocatorStats() is only implemented with MultiDeviceAdapter allocator")

class Client:
    def __init__(self, *devices):
        self.local_devices = lambda: list(devices)

def use(device=Device):
    _backends["cpu"] = Client()
    _backends["cuda"] = Client(device())
"""

_PYTORCH = f"""
_initialized, _queued_calls = False, []

def is_initialized():
    return _initialized

def device_count():
    assert _initialized
    return 1

def memory_stats_as_nested_dict(device):
    assert _initialized and device == 0
    def stat(current, peak):
        figures = {{"current": current, "peak": peak, "allocated": 9, "freed": 9}}
        return {{"all": figures, "small_pool": figures}}
    mib = {MIB}
    return {{"num_ooms": 0, "allocated_bytes": stat(512 * mib, 513 * mib), "reserved_bytes": stat(514 * mib, 514 * mib),
            "segment": stat(2, 2)}}

def plug():
    global memory_stats_as_nested_dict
    def memory_stats_as_nested_dict(device):
        raise RuntimeError("CUDAPluggableAllocator does not yet support getDeviceStats. If you need it, ...")

def use():
    global _initialized
    _initialized = True
    for call, trace in _queued_calls:
        call()
"""

_CUPY = f"""
import threading
import cuda_driver

current = threading.local()

class Device:
    def __init__(self, device):
        self.id = device
    def use(self):
        if not cuda_driver.active(self.id):
            raise SystemExit("CuPy initialised")
        current.device = self.id
    def __enter__(self):
        self.previous = getattr(current, "device", 0)
        self.use()
    def __exit__(self, *_):
        Device(self.previous).use()

class MemoryPool:
    def used_bytes(self):
        return 255 * {MIB} * cuda_driver.active(current.device)
    def total_bytes(self):
        return 256 * {MIB} * cuda_driver.active(current.device)
    def get_limit(self):
        return 0
"""

_RMM = f"""
class Statistics:
    current_bytes, peak_bytes = 60 * {MIB}, 62 * {MIB}

class CudaMemoryResource:
    pass

class PoolMemoryResource:
    def pool_size(self):
        return 64 * {MIB}
    def get_upstream(self):
        return CudaMemoryResource()

class StatisticsResourceAdaptor:
    allocation_counts = Statistics()
    def get_upstream(self):
        return PoolMemoryResource()

def get_log_filenames():
    return {{0: None}}

def get_per_device_resource(device):
    if device:
        raise SystemExit("RMM has a resource more")
    return StatisticsResourceAdaptor()
"""

_DRIVER = """
int active = 0;
int cuDeviceGetCount(int* count) { *count = 2; return 0; }
int cuDeviceGet(int* device, int ordinal) { *device = ordinal; return ordinal > 1; }
int cuDeviceGetUuid(char* uuid, int device) { for (int i = 0; i < 16; i++) uuid[i] = i; return 0; }
int cuDeviceGetUuid_v2(char* uuid, int device) { return cuDeviceGetUuid(uuid, device); }
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* is) {
    *flags = 0; *is = active >> device & 1; return 0;
}
"""

_MODULES = {
    "cuda_driver": """
import ctypes, pathlib
_library = ctypes.CDLL(str(pathlib.Path(__file__).with_name("libcuda.so.1")))
def active(gpu):
    return ctypes.c_int.in_dll(_library, "active").value >> gpu & 1
def initialise(gpu=0):
    ctypes.c_int.in_dll(_library, "active").value |= 1 << gpu
""",
    "jax/__init__": "__version__ = '0.7.0'\nfrom jax._src import xla_bridge\nimport jax.numpy\n",
    "jax/numpy": "",
    "jax/_src/__init__": "",
    "jax/_src/xla_bridge": _JAX,
    "torch/__init__": "__version__ = '2.8.0'\nimport torch._C\nimport torch.cuda\nimport torch.nn\n",
    "torch/_C": "",
    "torch/nn": "",
    "torch/cuda/__init__": _PYTORCH,
    "cupy/__init__": """
__version__ = '13.4.1'
from cupy import _core, cuda, linalg
_pool = cuda.MemoryPool()
def get_default_memory_pool():
    return _pool
""",
    "cupy/_core": "",
    "cupy/linalg": "",
    "cupy/cuda": _CUPY,
    "rmm/__init__": "__version__ = '25.08.00'\nfrom rmm import mr, statistics\n",
    "rmm/statistics": "",
    "rmm/mr": _RMM,
}

USED = """
import threading
import cuda_driver, jax, torch, cupy, rmm
threading.Thread(target=threading.Event().wait, daemon=True).start()
import colorsys
cuda_driver.initialise()
jax._src.xla_bridge.use()
torch.cuda.use()
"""
"""The beginning of a script that uses all of them."""


def write_stand_ins(folder: Path) -> str:
    """Write the stand-ins into *folder*, which is to be in ``PYTHONPATH``, and return it."""
    for name, source in _MODULES.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    (folder / "driver.c").write_text(_DRIVER)
    shared = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(folder / "libcuda.so.1")]
    subprocess.run(["gcc", *shared, str(folder / "driver.c")], check=True)
    return str(folder)
