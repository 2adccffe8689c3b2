"""The stream as lines of JSON in a file: one event a line, a ``session`` event first.

The file is compressed with gzip, or plain where its name says so (``.jsonl``). The writer hands the kernel whole lines
only, so a recording is complete up to its last line however the writer ends. The reader is lazy and forgiving: it
keeps one line in memory, skips what is damaged and counts it, and can read a file that is still being written. It can
begin at any chunk of a compressed recording. A recording of an older format is upgraded line by line as it is read.
"""

from tfmemtop.recording.errors import RecordingError, Trouble
from tfmemtop.recording.lines import BEGINNING, Place
from tfmemtop.recording.reader import Recording, Start, read
from tfmemtop.recording.writer import Writer

__all__ = ["BEGINNING", "Place", "Recording", "RecordingError", "Start", "Trouble", "Writer", "read"]
