# memory rises while layers are built, one after the other, and the optimizer gets its copies; then it stays level
import time

import tensorflow as tf

blocks = [tf.keras.layers.Dense(768, activation="relu") for _ in range(12)]
optimizer = None
for i in range(100):
    active = blocks[: min(len(blocks), 1 + i // 3)]
    x = tf.random.normal([16, 768])
    with tf.GradientTape() as tape:
        for block in active:
            x = block(x)
        loss = tf.reduce_mean(tf.square(x))
    variables = [v for block in active for v in block.trainable_variables]
    if len(active) == len(blocks) and optimizer is None:
        optimizer = tf.keras.optimizers.Adam()
    for v, g in zip(variables, tape.gradient(loss, variables)):
        v.assign_sub(0.001 * g)
    if optimizer:
        optimizer.apply_gradients((tf.zeros_like(v), v) for v in variables)
    time.sleep(0.05)
    if i % 25 == 0:
        print("step", i, float(loss), flush=True)
