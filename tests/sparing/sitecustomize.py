"""Programs with the variables of :func:`tests.sparing.variables` run this at their start, like a user's own file."""

import atexit
import gc

# Full garbage collections are off during imports and at exit: each would go through thousands of modules.
# The first two generations are collected as usual.
gc.set_threshold(*gc.get_threshold()[:2], 1 << 30)
atexit.register(gc.freeze)
