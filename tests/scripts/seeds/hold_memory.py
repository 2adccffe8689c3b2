"""Each GPU is used, with more memory at the peak than is kept. Arguments: MiB to keep, MiB at the peak, seconds.

``--growth`` turns growth on, ``--split`` makes two logical devices of the first GPU.
"""

import sys

import tensorflow as tf
from seen import tell

keep_mib, peak_mib, hold_s = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
gpus = tf.config.list_physical_devices("GPU")
for gpu in gpus if "--growth" in sys.argv else []:
    tf.config.experimental.set_memory_growth(gpu, True)
if "--split" in sys.argv:
    halves = [tf.config.LogicalDeviceConfiguration(memory_limit=1024)] * 2
    tf.config.set_logical_device_configuration(gpus[0], halves)
kept = []
for device in tf.config.list_logical_devices("GPU"):
    with tf.device(device.name):
        peak = tf.zeros([peak_mib, 256, 1024])
        del peak
        kept.append(tf.zeros([keep_mib, 256, 1024]))
        weights = tf.random.normal([1024, 1024])
        print("sum", float(tf.reduce_sum(tf.matmul(weights, weights)) * 0), file=sys.stderr)
tell(hold_s)
