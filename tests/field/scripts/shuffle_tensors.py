# after tensorflow#44176, #54299, #35132: the shuffle buffer of big elements fills the memory
import sys

import tensorflow as tf


def examples():
    for i in range(3000):
        yield tf.random.uniform([300, 300, 3]), i % 10


signature = (tf.TensorSpec([300, 300, 3]), tf.TensorSpec([], tf.int32))
data = tf.data.Dataset.from_generator(examples, output_signature=signature)
data = data.shuffle(int(sys.argv[1])).batch(16).prefetch(2)
conv = tf.keras.layers.Conv2D(4, 3)


@tf.function
def step(x):
    return tf.reduce_mean(conv(x))


for i, (x, _) in enumerate(data.take(60)):
    step(x)
    if i % 10 == 0:
        print(i, flush=True)
