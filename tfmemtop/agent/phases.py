"""Notes the phases of the script, with their peaks: Keras' fit, evaluate and predict, and the script's own blocks."""

from time import monotonic
from typing import Any, Optional

from .messenger import Messenger

_OPEN = 64  # phases at one time
_NAMES = 100
_NAME = 64  # characters
_PACE_S = 1.0  # between two messages about a phase that goes on
_RARER_S = 0.1
"""The n-th phase of a name is told only if it lasts n times as long: a block around each step soon is not told."""


class Phase:
    """A phase from ``began`` to ``ended``, by the monotonic clock.

    ``peaks`` are the most bytes in use of each device, in readings of which the time since the one before lies within.
    """

    __slots__ = ("began", "ended", "epoch", "name", "next", "number", "peaks", "read", "told")

    def __init__(self, name: str, epoch: Optional[int]) -> None:
        self.name = name[:_NAME]
        self.epoch = epoch
        self.began = self.next = monotonic()
        self.ended: Optional[float] = None
        self.read = False  # whether the devices have been read in it
        self.peaks: dict[str, int] = {}
        self.told: dict[str, int] = {}
        self.number = 0  # 0 until it is told


class Phases:
    """The phases that go on. The script's threads call :meth:`begin` and :meth:`end`, the sampler's thread the rest."""

    def __init__(self, messenger: Messenger) -> None:
        self._messenger = messenger
        self._phases: list[Phase] = []
        self._names: dict[str, int] = {}  # how many phases were told
        self._number = 0

    def begin(self, name: Any, epoch: Optional[int] = None) -> Optional[Phase]:
        """Return the phase *name* that begins now; ``None`` if it is not noted."""
        if type(name) is not str or len(self._phases) >= _OPEN:
            return None
        phase = Phase(name, epoch)
        self._phases.append(phase)
        return phase

    def end(self, phase: Optional[Phase]) -> None:
        """Note that *phase* ends now."""
        if phase is not None:
            phase.ended = monotonic()

    def read(self, device: str, highest: int) -> None:
        """Note that at most *highest* bytes of *device* were in use since the reading before."""
        for phase in self._phases[:]:
            if phase.read and phase.ended is None:
                phase.peaks[device] = max(highest, phase.peaks.get(device, 0))

    def tell(self, now: float) -> None:
        """Send the phases that have ended, or have a higher peak, after each reading of all devices."""
        for phase in self._phases[:]:
            if phase.ended is not None:
                self._phases.remove(phase)
            elif phase.peaks == phase.told or now < phase.next:
                phase.read = True
                continue
            if phase.peaks and (phase.number or self._is_worth(phase, now)):
                self._tell(phase, now)

    def _is_worth(self, phase: Phase, now: float) -> bool:
        name = phase.name.rstrip("0123456789")
        name = name if name in self._names or len(self._names) < _NAMES else ""
        told = self._names.get(name, 0)
        if (phase.ended or now) - phase.began < _RARER_S * told:
            return False
        self._names[name] = told + 1
        self._number += 1
        phase.number = self._number
        return True

    def _tell(self, phase: Phase, now: float) -> None:
        phase.next, phase.told = now + _PACE_S, phase.peaks.copy()
        told = {each: getattr(phase, each) for each in ("number", "name", "epoch", "began", "ended", "peaks")}
        self._messenger.send("phase", **told)
