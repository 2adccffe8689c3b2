"""One visible GPU with growth, and a tensor of 40 kB: how little memory can a process hold?"""

import tensorflow as tf
from seen import tell

gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.set_visible_devices(gpus[:1], "GPU")
    tf.config.experimental.set_memory_growth(gpus[0], True)
kept = tf.random.normal([100, 100])
tell(gpus=len(gpus), bytes=int(kept.shape.num_elements()) * 4)
