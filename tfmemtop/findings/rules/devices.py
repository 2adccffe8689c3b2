"""The rules about which GPUs TensorFlow has, and how it divides them into logical devices."""

from collections.abc import Iterator

from tfmemtop import events
from tfmemtop.events.machine import is_gpu
from tfmemtop.findings.cause import Key
from tfmemtop.findings.finding import DeviceFinding, Finding, Said, Severity
from tfmemtop.findings.names import Place, place_name
from tfmemtop.findings.remedy import Action, Remedy
from tfmemtop.findings.room import BESIDE_POOLS
from tfmemtop.findings.rules import rule
from tfmemtop.findings.run_devices import ever_had_gpu, hooked_of_run, output, printed, run_devices, variable
from tfmemtop.state import State
from tfmemtop.state.model import Hooked
from tfmemtop.state.waiting import SETTLED_S
from tfmemtop.tensorflow_text import NO_CUDA, NO_LIBRARIES, libraries_not_loaded
from tfmemtop.units import counted, format_bytes


class NoGpuSeen(Finding, frozen=True):
    """TensorFlow in process ``pid`` computes on the CPU, though the driver has ``gpus``.

    ``hidden`` is the value of CUDA_VISIBLE_DEVICES if it hides all of them. ``complaint`` is what TensorFlow printed,
    ``libraries`` are those that it could not load, where it named them.
    """

    key = Key.SETTING

    remedies = (Action.CHOOSE_GPUS,)

    pid: int
    gpus: int
    hidden: str | None = None
    complaint: str | None = None
    libraries: tuple[str, ...] = ()

    @property
    def severity(self) -> Severity:
        meant = self.hidden is not None and self.hidden.strip() in ("", "-1")
        return Severity.INFO if meant else Severity.WARNING

    @property
    def said(self) -> Said:
        there = f"The driver has {counted(self.gpus, 'GPU')} here; this is process {self.pid}."
        if self.hidden is not None:
            return Said(
                f"TensorFlow computes on the CPU: CUDA_VISIBLE_DEVICES={self.hidden} in the environment hides "
                f"{'the GPU' if self.gpus == 1 else 'the GPUs'}.",
                "The shell, the job's settings or the script itself set the variable before TensorFlow made its "
                "devices. CUDA then has no GPU, and TensorFlow goes on without one.",
                ("unset CUDA_VISIBLE_DEVICES",),
                there,
            )
        return Said(
            f"TensorFlow computes on the CPU{self._why}.",
            "TensorFlow has no GPU if CUDA_VISIBLE_DEVICES hides it, if CUDA's libraries are missing, or if it was "
            "built without CUDA; it goes on without one. Its wheel for pip needs the extra and-cuda, which brings the "
            "libraries. The process's details show its environment.",
            (
                "pip install 'tensorflow[and-cuda]'",
                "python -c 'import tensorflow as tf; print(tf.config.list_physical_devices(\"GPU\"))'",
            ),
            there,
        )

    @property
    def _why(self) -> str:
        if self.libraries:
            return f": it could not load {', '.join(self.libraries)}"
        return {
            NO_LIBRARIES: ": it could not load some of CUDA's libraries (with TF_CPP_MAX_VLOG_LEVEL=1 it names them)",
            NO_CUDA: ": CUDA could not be started",
        }.get(self.complaint or "", ", though the driver has a GPU")


@rule(60)
def no_gpu_seen(state: State) -> Iterator[NoGpuSeen]:
    """Find a process where TensorFlow has no GPU though the driver has one, and no setting or call requested that."""
    run = state.run
    if run is None or not state.devices or run.settings.gpus == () or ever_had_gpu(state):
        return  # a worker may leave the GPU to other processes of its run
    processes = list(hooked_of_run(state))
    complaint = printed(state, NO_LIBRARIES, NO_CUDA)
    for pid, hooked in processes:
        if hooked.outside:
            continue  # whether the script hid them itself cannot be seen
        # With several processes it is not known which of them wrote it: a worker may need no GPU.
        has_none = _made_without_gpu(state, hooked) or (complaint is not None and len(processes) == 1)
        if not has_none or _hid_them_itself(hooked):
            continue
        hidden = variable(state, pid, "CUDA_VISIBLE_DEVICES")
        first = (hidden or "").split(",")[0].strip()  # CUDA stops at the first that it does not know
        known = first.startswith(("GPU-", "MIG-")) or first in map(str, range(len(state.devices)))
        if hidden is not None and not known:
            yield NoGpuSeen(pid, len(state.devices), hidden)
        else:
            libraries = tuple(libraries_not_loaded(output(state)))
            yield NoGpuSeen(pid, len(state.devices), None, complaint, libraries)
        return


def _made_without_gpu(state: State, hooked: Hooked) -> bool:
    """Return whether the process initialised its devices so long ago that events for all of them have arrived."""
    times = [effective.t for effective in hooked.effective.values()]
    if hooked.initialised and not hooked.initialised.error:
        times.append(hooked.initialised.t)
    return any(state.now - t >= SETTLED_S for t in times)


def _hid_them_itself(hooked: Hooked) -> bool:
    calls = [request for request in hooked.requested if _hides_gpus(request)]
    return bool(calls) and calls[-1].error is None


def _hides_gpus(request: events.Requested) -> bool:
    """Return whether the call makes no GPU visible: its arguments are ``[], GPU``, not ``[], CPU``."""
    of_others = request.device_type == "CPU" or request.call is not events.Call.SET_VISIBLE_DEVICES
    return not of_others and request.devices is not None and not any(is_gpu(d) for d in request.devices)


class LimitsBeyondCard(DeviceFinding, frozen=True):
    """The ``limits`` of one GPU's logical devices add up to more than the card's ``whole``; both in bytes."""

    key = Key.SETTING

    limits: tuple[int, ...]
    whole: int

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        return (Action.SHARE_LIMIT if len(self.limits) > 1 else Action.SET_LIMIT,)

    @property
    def said(self) -> Said:
        asked = f"logical devices with limits of {format_bytes(sum(self.limits))} together"
        if len(self.limits) == 1:
            asked = f"a limit of {format_bytes(self.limits[0])}"
        return Said(
            f"{place_name(self.place)} has {asked}, more than the card's {format_bytes(self.whole)}.",
            "TensorFlow takes the limits as they are given and does not compare them with the card. Each logical "
            "device has a pool of its own, and what it does not use is lost to the others. CUDA's context and "
            f"libraries take more besides: {BESIDE_POOLS}.",
            figures="The card is full before the limits are reached.",
        )


@rule(250)
def logical_devices_beyond_card(state: State) -> Iterator[LimitsBeyondCard]:
    """Find GPUs whose logical devices have limits that add up to more than the GPU's memory."""
    limits: dict[tuple[int, int], list[int]] = {}
    for device in run_devices(state):
        if device.card and device.asked_limit is not None:
            limits.setdefault((device.pid, device.card.info.index), []).append(device.asked_limit)
    for (_, index), asked in limits.items():
        whole = state.devices[index].info.total
        if whole is not None and sum(asked) > whole:
            yield LimitsBeyondCard(Place(index), tuple(asked), whole)
