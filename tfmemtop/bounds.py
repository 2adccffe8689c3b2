"""Limits for the values in a message. The decoder refuses a message with a larger value: it is not an event.

The limits are far above all values that occur. They are low enough that every value that passes can be added up, drawn
and stored: no sum of sizes is too large for a float, no time is beyond the calendar, and no list is longer than the
screen can fold.
"""

from typing import Annotated

from msgspec import Meta

Size = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""Bytes, addresses and counts. TensorFlow's own values are 64 bits wide."""

Positive = Annotated[int, Meta(ge=1, le=2**63 - 1)]
"""The same, where 0 has no meaning: a limit, a whole of which a share is computed. So it can be divided by."""

Number = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
"""Process ids, line numbers of a file, exit codes, percents, degrees."""

Seconds = Annotated[float, Meta(ge=0, le=1e9)]
"""Seconds since a session began, or within it: up to 30 years."""

Change = Annotated[float, Meta(ge=-1e9, le=1e9)]
"""Seconds before or after a session began, percents of a processor, watts."""

Epoch = Annotated[float, Meta(ge=0, le=1e11)]
"""Seconds since 1970, up to the year 5138, which ``datetime`` can still represent."""

Share = Annotated[float, Meta(ge=0, le=1)]

Index = Annotated[int, Meta(ge=0, le=255)]
"""The index of a GPU, in the driver's order."""

Cells = Annotated[int, Meta(ge=0, le=10_000)]
"""Columns or rows of a terminal."""

Name = Annotated[str, Meta(max_length=1024)]
"""The name of a user, a host, an operation or an argument."""

Label = Annotated[str, Meta(max_length=64)]
"""The name of a device or an allocator, in readings of which hundreds are kept: TensorFlow's have 25 characters."""

LONGEST_TEXT = 2**17
Text = Annotated[str, Meta(max_length=LONGEST_TEXT)]
"""A message, a path, a piece of output, or an argument. The length is the kernel's limit for one argument."""

MOST_WORDS = 2**18
Words = Annotated[list[Text], Meta(max_length=MOST_WORDS)]
"""A command line. The limit is above the number of arguments that the kernel accepts by default."""

MOST_VARIABLES = 2**14
Variables = Annotated[dict[Text, Text], Meta(max_length=MOST_VARIABLES)]
"""The environment variables of a process."""

Typed = Annotated[str, Meta(max_length=2**20)]
"""Text that the user types or pastes."""

Few, Some, Many = Meta(max_length=256), Meta(max_length=4096), Meta(max_length=2**17)
"""Lengths of lists: *Few* for devices and the like, *Some* for regions and cells of a map, *Many* for processes."""

Addresses = Annotated[bytes, Many]
"""Addresses in memory, 8 bytes each, the lowest byte first."""
