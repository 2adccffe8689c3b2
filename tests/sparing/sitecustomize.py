"""Read by the programs that :func:`tests.sparing.variables` are for, at their start, as a user's own would be."""

import atexit
import gc

# No search for garbage goes through thousands of modules again and again, neither while they are imported
# nor at the end. The first two generations are searched as ever.
gc.set_threshold(*gc.get_threshold()[:2], 1 << 30)
atexit.register(gc.freeze)
