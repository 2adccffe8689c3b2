"""Recordings: the stream as lines of JSON in a file, one event in each line, a ``session`` event first.

The file is compressed with gzip, or plain if its name ends in ``.jsonl``. The writer passes only whole lines to the
system, so a recording is complete up to its last line, however the writer ends. The reader is lazy and tolerant: it
keeps one line in memory, skips and counts damaged lines, and can read a file that is still being written. It can begin
at any chunk of a compressed recording.
"""

from tfmemtop.events.recording.lines import BEGINNING, Place, RecordingError
from tfmemtop.events.recording.reader import Recording, Start, read
from tfmemtop.events.recording.writer import Writer

__all__ = ["BEGINNING", "Place", "Recording", "RecordingError", "Start", "Writer", "read"]
