"""A dense network is trained with growing batches: how does the peak follow the size of the batch?"""

import tensorflow as tf
from seen import figures, tell

gpus = tf.config.list_physical_devices("GPU")
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
layers = [tf.keras.layers.Input([784]), tf.keras.layers.Dense(4096, activation="relu"), tf.keras.layers.Dense(10)]
model = tf.keras.Sequential(layers)
optimizer = tf.keras.optimizers.Adam(0.001)
optimizer.build(model.trainable_variables)


def train(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.keras.losses.sparse_categorical_crossentropy(y, model(x), from_logits=True))
    optimizer.apply_gradients(
        zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True)
    )
    return loss


step = tf.function(train, reduce_retracing=True)
peaks = {}
for size in (64, 256, 1024, 4096) if gpus else (64, 256):
    for _ in range(10):
        step(tf.random.normal([size, 784]), tf.random.uniform([size], 0, 10, tf.int32))
    peaks[size] = {name: each["peak"] for name, each in figures().items()}
tell(gpus=len(gpus), peaks=peaks)
