"""The labels before figures, and titles of one or two words: the same word for the same thing on every screen."""

# Memory of a pool, and what of the process's memory is outside of it.
IN_USE, CACHED, FREE = "in use", "cached", "free"
POOL, PEAK, LIMIT, PEAK_POOL, PEAK_IN_USE = "pool", "peak", "limit", "peak pool", "peak in use"
CONTEXT_AND_OUTSIDE, OTHERS = "context+outside", "others"
LARGEST_FREE, FRAGMENTATION, FRAGMENTED = "largest free", "fragmentation", "fragmented"
CHUNKS, REGIONS, REGION, ALLOCATIONS, PARTLY = "chunks", "regions", "region", "allocations", "partly"
GROWTH, ON, OFF = "growth", "on", "off"

# Columns of the tables beside a pool's map.
FROM, FREE_BYTES = "from", "free bytes"
SIZE, ASKED, WASTE = "size", "asked", "waste"
AT, TOOK, NOW, FULL, GIVEN_BACK = "at", "took", "now", "full", "given back"

# The page of a process.
PROCESS, THE_HOOK, ENVIRONMENT, ALLOCATORS = "Process", "The hook", "Environment", "TensorFlow's allocators"
COMMAND, USER, STARTED, STATE, PARENT, RUN = "command", "user", "started", "state", "parent", "run"
HOST_MEMORY, PYTHON, TENSORFLOW, BUILD = "host memory", "Python", "TensorFlow", "build"
REFUSED_AT, MADE_BY, UNDER, NOT_KNOWN = "refused at", "made by", "under", "not known"
ALLOCATOR_UNKNOWN = "allocator unknown"
UNNAMED_TENSOR = "unnamed tensor"

# What keys do.
SEND_NOTHING, NEW_SEARCH, NEXT_OR_NONE, BY_HOLDER = "send nothing", "new search", "next, none", "by holder"
