"""Read by the programs that :func:`tests.sparing.variables` are for, at their start, as a user's own would be."""

import atexit
import gc

# Full garbage collections are off during imports and at exit: each would go through thousands of modules.
# The first two generations are collected as usual.
gc.set_threshold(*gc.get_threshold()[:2], 1 << 30)
atexit.register(gc.freeze)
