"""How large what a message holds may be. What is larger is no event: the decoder refuses it.

Far above anything that happens, and low enough that whatever passes can be added up, drawn and kept: no sum of sizes
is beyond a float, no time beyond a calendar, no list longer than a screen can fold.
"""

from typing import Annotated

from msgspec import Meta

Size = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""Bytes, addresses, and counts of things; TensorFlow's own are 64 bits wide."""

Number = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
"""Process ids, lines of a file, exit codes, percents, degrees."""

Seconds = Annotated[float, Meta(ge=0, le=1e9)]
"""Of a session: up to 30 years."""

Change = Annotated[float, Meta(ge=-1e9, le=1e9)]
"""Seconds before or after a session began, percents of a processor, watts."""

Epoch = Annotated[float, Meta(ge=0, le=1e11)]
"""Seconds since 1970, up to the year 5138: what calendars can name."""

Share = Annotated[float, Meta(ge=0, le=1)]

Index = Annotated[int, Meta(ge=0, le=255)]
"""Of a GPU, as the driver counts them."""

Cells = Annotated[int, Meta(ge=0, le=10_000)]
"""Columns or rows of a terminal."""

Name = Annotated[str, Meta(max_length=1024)]
"""Of a device, an allocator, a user, a host."""

LONGEST_TEXT = 2**17
Text = Annotated[str, Meta(max_length=LONGEST_TEXT)]
"""A message, a path, a piece of output, an argument: the kernel's bound for one of a command line."""

MOST_WORDS = 2**18
Words = Annotated[list[Text], Meta(max_length=MOST_WORDS)]
"""A command line: more arguments than the kernel takes by default."""

MOST_VARIABLES = 2**14
Variables = Annotated[dict[Text, Text], Meta(max_length=MOST_VARIABLES)]
"""An environment."""

Typed = Annotated[str, Meta(max_length=2**20)]
"""What somebody types, or pastes."""

Few, Some, Many = Meta(max_length=256), Meta(max_length=4096), Meta(max_length=2**17)
"""Of lists: devices and the like; regions and cells of a map; processes."""
