"""The settings that are in effect in a run. Pure."""

import msgspec

from tfmemtop.events.device_names import is_gpu
from tfmemtop.settings import Settings
from tfmemtop.state.model import RunState


class EffectiveSettings(msgspec.Struct, frozen=True):
    """The settings that TensorFlow uses in a run: on its GPUs, or on the CPU if there are none.

    ``chosen`` is what the user chose. Until TensorFlow has made its devices, ``settled`` is false and nothing else is
    known. ``growths`` has two values where devices differ. ``limits`` are bytes, one for each device with a limit.
    """

    chosen: Settings
    settled: bool = False
    on_gpu: bool = False
    growths: frozenset[bool] = frozenset()
    limits: tuple[int, ...] = ()
    allocators: tuple[str, ...] = ()

    @property
    def chosen_beside(self) -> Settings:
        """The settings that the user chose and that the other fields do not show."""
        # The CPU pool that the user chose is kept only if there are GPUs: without them, ``limits`` has it.
        cpu_pool = self.chosen.cpu_pool if self.on_gpu else None
        return msgspec.structs.replace(self.chosen, growth=None, memory_limit=None, allocator=None, cpu_pool=cpu_pool)


def effective_settings(run: RunState) -> EffectiveSettings:
    """Return the settings of *run*, as TensorFlow's devices last had them."""
    gpus = [device for name, device in run.effective.items() if is_gpu(name)]
    # If there are GPUs, the pool on the CPU is left out: it always grows, and has a limit of its own.
    devices = gpus or list(run.effective.values())
    return EffectiveSettings(
        chosen=run.settings,
        settled=bool(devices),
        on_gpu=bool(gpus),
        growths=frozenset(device.growth for device in devices if device.growth is not None),
        limits=tuple(device.limit for device in devices if device.limit is not None),
        allocators=tuple(sorted({device.allocator for device in devices if device.allocator})),
    )
