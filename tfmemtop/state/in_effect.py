"""Which settings a run has in effect. Pure."""

from dataclasses import dataclass

import msgspec

from tfmemtop.events.device_names import is_gpu
from tfmemtop.settings import Settings
from tfmemtop.state.model import RunState


@dataclass(frozen=True, slots=True)
class InEffect:
    """What TensorFlow does in a run: on its GPUs, or without any on the CPU.

    ``chosen`` is what the user chose. Until TensorFlow has made its devices, ``settled`` is false and nothing else is
    known. ``growths`` holds two values where devices differ; ``limits`` are bytes, one a device that has a limit.
    """

    chosen: Settings
    settled: bool = False
    on_gpu: bool = False
    growths: frozenset[bool] = frozenset()
    limits: tuple[int, ...] = ()
    allocators: tuple[str, ...] = ()

    @property
    def chosen_beside(self) -> Settings:
        """What the user chose and the other fields do not tell, once these are known."""
        # A pool on the CPU that the user chose is told beside GPUs only: without them it is the limit.
        cpu_pool = self.chosen.cpu_pool if self.on_gpu else None
        return msgspec.structs.replace(self.chosen, growth=None, memory_limit=None, allocator=None, cpu_pool=cpu_pool)


def in_effect(run: RunState) -> InEffect:
    """The settings of *run*, as TensorFlow told them last."""
    gpus = [device for name, device in run.effective.items() if is_gpu(name)]
    # Beside GPUs the pool on the CPU, which always grows up to a limit of its own, is another matter.
    devices = gpus or list(run.effective.values())
    return InEffect(
        chosen=run.settings,
        settled=bool(devices),
        on_gpu=bool(gpus),
        growths=frozenset(device.growth for device in devices if device.growth is not None),
        limits=tuple(device.limit for device in devices if device.limit is not None),
        allocators=tuple(sorted({device.allocator for device in devices if device.allocator})),
    )
