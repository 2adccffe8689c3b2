"""Two blocks of attention, trained by a loop of the script's own."""

import tensorflow as tf

tokens = tf.keras.layers.Input((96,), dtype="int32")
x = tf.keras.layers.Embedding(2000, 128)(tokens)
for _ in range(2):
    x = x + tf.keras.layers.MultiHeadAttention(4, 32)(x, x)
    x = x + tf.keras.layers.Dense(128)(tf.keras.layers.Dense(512, activation="gelu")(x))
model = tf.keras.Model(tokens, tf.keras.layers.Dense(2000)(x))
optimizer = tf.keras.optimizers.Adam()


@tf.function  # type: ignore[untyped-decorator]
def step(batch: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.keras.losses.sparse_categorical_crossentropy(batch, model(batch), from_logits=True))
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    return loss


for number in range(15):
    step(tf.random.stateless_uniform((24, 96), (1, number), 0, 2000, tf.int32))
print("done")
