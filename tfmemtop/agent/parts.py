"""The parts of the agent that learn of the script's objects, in the script's threads and in the sampler's."""

from typing import NamedTuple

from .census import Census
from .collector import Collector
from .devices import Making
from .frameworks import Frameworks
from .functions import Functions
from .messenger import Messenger
from .operation_lines import OperationLines
from .phases import Phases
from .windows import Windows


class Parts(NamedTuple):
    """What the wrappers of TensorFlow's functions tell of what they notice, and what the sampler's thread asks."""

    messenger: Messenger
    collector: Collector
    making: Making
    census: Census
    functions: Functions
    lines: OperationLines
    windows: Windows
    phases: Phases
    frameworks: Frameworks

    @classmethod
    def of(cls, messenger: Messenger) -> "Parts":
        """Make the parts, which report by *messenger*."""
        collector = Collector()
        observers = Making(messenger), Census(messenger, collector), Functions(messenger)
        lines, windows = OperationLines(messenger, collector), Windows(messenger)
        frameworks = Frameworks(messenger, collector)
        return cls(messenger, collector, *observers, lines, windows, Phases(messenger), frameworks)
