"""The vocabulary: every message and reading, in one ordered stream.

An event is one line of JSON whose ``type`` names its class below. ``t`` is seconds since the
session began, on the engine's monotonic clock. Sizes are bytes, and ``None`` (JSON ``null``) where
a value cannot be known. Devices are TensorFlow's logical ones, ``GPU:0``; ``index`` is NVML's.
The stream runs live from the engine to its readers, into recordings, and back out of them.
"""

import msgspec

from tfmemtop.events.base import (
    FORMAT,
    Event,
)
from tfmemtop.events.commands import (
    CensusNow,
    Command,
    Input,
    Leave,
    MapWanted,
    ReadEnvironment,
    Relaunch,
    Resize,
    Signal,
    Stop,
)
from tfmemtop.events.inside import (
    Allocator,
    Bin,
    Census,
    Chunk,
    Effective,
    Functions,
    Hook,
    HookEnd,
    HookError,
    Initialised,
    MemoryMap,
    OutOfMemory,
    PoolGrowth,
    Probe,
    Region,
    Requested,
    Traced,
    Variable,
    Waiting,
)
from tfmemtop.events.outside import (
    Device,
    DeviceProcess,
    DeviceReading,
    Environment,
    Notice,
    Output,
    Process,
    ProcessReading,
    ProcessReadings,
    Run,
    RunEnd,
    Session,
    Stopping,
    Terminal,
)

__all__ = [
    "FORMAT",
    "Allocator",
    "AnyCommand",
    "AnyEvent",
    "Bin",
    "Census",
    "CensusNow",
    "Chunk",
    "Command",
    "Device",
    "DeviceProcess",
    "DeviceReading",
    "Effective",
    "Environment",
    "Event",
    "Functions",
    "Hook",
    "HookEnd",
    "HookError",
    "Initialised",
    "Input",
    "Leave",
    "MapWanted",
    "MemoryMap",
    "Notice",
    "OutOfMemory",
    "Output",
    "PoolGrowth",
    "Probe",
    "Process",
    "ProcessReading",
    "ProcessReadings",
    "ReadEnvironment",
    "Region",
    "Relaunch",
    "Requested",
    "Resize",
    "Run",
    "RunEnd",
    "Session",
    "Signal",
    "Stop",
    "Stopping",
    "Terminal",
    "Traced",
    "Variable",
    "Waiting",
    "decode_command",
    "decode_event",
    "encode",
]

AnyEvent = (
    Session
    | Run
    | RunEnd
    | Stopping
    | Device
    | DeviceReading
    | Process
    | ProcessReadings
    | Environment
    | Hook
    | HookEnd
    | HookError
    | Requested
    | Initialised
    | Effective
    | Allocator
    | PoolGrowth
    | MemoryMap
    | Probe
    | Functions
    | Census
    | OutOfMemory
    | Waiting
    | Output
    | Terminal
    | Notice
)

AnyCommand = Relaunch | Stop | Leave | Signal | Input | Resize | ReadEnvironment | MapWanted | CensusNow

encode = msgspec.json.Encoder().encode
decode_event = msgspec.json.Decoder(AnyEvent).decode
decode_command = msgspec.json.Decoder(AnyCommand).decode
