"""All events and commands. The events of a session form one ordered stream.

An event is one line of JSON whose ``type`` names its class. ``t`` is seconds since the session began, on the engine's
monotonic clock. Sizes are bytes. ``None`` (JSON ``null``) means that a value cannot be known. Devices are
TensorFlow's logical ones, ``GPU:0``; ``index`` is NVML's. The engine sends the stream to its readers and writes it to
recordings; a recording is read back as the same stream. How to add an event: ``tfmemtop/events/base.py``.
"""

from tfmemtop.events.base import FORMAT as FORMAT
from tfmemtop.events.base import Event as Event
from tfmemtop.events.base import Origin as Origin
from tfmemtop.events.base import event_types as event_types
from tfmemtop.events.census import *
from tfmemtop.events.commands import *
from tfmemtop.events.damage import *
from tfmemtop.events.decoding import PutDown as PutDown
from tfmemtop.events.decoding import Unreadable as Unreadable
from tfmemtop.events.decoding import decode_command as decode_command
from tfmemtop.events.decoding import decode_event as decode_event
from tfmemtop.events.decoding import decode_from_hook as decode_from_hook
from tfmemtop.events.decoding import decoder as decoder
from tfmemtop.events.decoding import encode as encode
from tfmemtop.events.decoding import union_of as union_of
from tfmemtop.events.holders import *
from tfmemtop.events.hook import *
from tfmemtop.events.machine import *
from tfmemtop.events.memory_map import *
from tfmemtop.events.notice import *
from tfmemtop.events.probe import *
from tfmemtop.events.replayed import *
from tfmemtop.events.runs import *
