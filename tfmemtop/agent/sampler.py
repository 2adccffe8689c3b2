"""The thread that reads the allocators, at the monitor's pace."""

import os
import signal
from types import ModuleType
from typing import TYPE_CHECKING, Any

from . import threads
from .devices import Device, gpu_uuid, local_devices

if TYPE_CHECKING:
    from .core import Agent

_OWN_FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT}

_GOODBYE_S = 0.5  # the longest the script's end waits for a reading under way


class Sampler:
    """Reads every allocator of this process until stopped or until the monitor has gone."""

    def __init__(self, agent: "Agent", context: ModuleType) -> None:
        self._agent = agent
        self._context = context
        self._made: tuple[Any, list[str]] = (None, [])
        self._generation = self._seen = 0
        self._devices: list[Device] = []
        self._stopping = False
        self._wake = threads.allocate_lock()
        self._wake.acquire()
        self._ended = threads.allocate_lock()

    def start(self) -> None:
        """Start the thread. The script's signals keep going to the script's own threads."""
        # Blocked before it starts, since it inherits this: a signal that only the thread took would
        # not interrupt the main thread's waiting.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - _OWN_FAULTS)
            self._ended.acquire()
            threads.start_new_thread(self._run, ())
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def devices_changed(self, options: Any, settled: "list[str]") -> None:
        """TensorFlow has made its devices, with the GPUOptions *options*; *settled* says our share in them."""
        self._made = options, settled
        self._generation += 1

    def stop(self) -> None:
        """Take a last reading and end, waiting half a second at most."""
        self._stopping = True
        try:
            self._wake.release()
        except RuntimeError:
            pass  # woken already, and not yet back at its waiting
        if self._ended.acquire(True, _GOODBYE_S):
            self._ended.release()

    def _run(self) -> None:
        agent, pid = self._agent, self._agent.pid
        try:
            while os.getpid() == pid:
                stopping = self._stopping
                agent.quietly("reading the allocators", self._tick)
                agent.link.listen()
                if stopping or agent.link.dead:
                    break
                self._wake.acquire(True, agent.interval)
        finally:
            self._ended.release()

    def _tick(self) -> None:
        # Locals only: a reference kept would keep the script's context from being deleted.
        current = self._context._context
        handle = None if current is None else current._context_handle
        if handle is None:
            return
        if self._seen != self._generation:
            self._seen = self._generation
            self._look_again(current)
        self._agent.link.pump()
        for device in list(self._devices):
            try:
                reading = device.read(handle)
            except Exception as error:
                self._devices.remove(device)
                self._agent.report(f"reading {device.name}", error)
                continue
            self._agent.offer("allocator", device=device.name, allocator=device.allocator_name, **reading._asdict())

    def _look_again(self, context: Any) -> None:
        options, settled = self._made
        self._devices = []
        self._devices = local_devices(context, options, self._context.pywrap_tfe.TFE_GetMemoryInfo)
        for device in self._devices:
            self._agent.send(
                "effective",
                device=device.name,
                physical=device.physical,
                uuid=None if device.physical is None else gpu_uuid(device.physical),
                growth=device.growth,
                limit=device.limit,
                allocator=device.allocator,
                settled=settled if device.name.startswith("GPU") else [],
            )
