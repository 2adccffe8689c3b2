"""A tensor of 4 GiB is made and deleted, with growth; MiB as the first argument. Then the script holds still: is memory
given back?
"""

import sys

import tensorflow as tf
from seen import figures, process_total, tell

gpus = tf.config.list_physical_devices("GPU")
mib = int(sys.argv[1]) if len(sys.argv) > 1 else 4096 if gpus else 64
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
tensor = tf.random.normal([mib, 256, 1024])
made = {"figures": figures(), "process_total": process_total()}
del tensor
tell(hold_s=8.0, gpus=len(gpus), made=made, bytes=mib * 2**20)
