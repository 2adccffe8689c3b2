# after tensorflow/privacy#126, DeepCTR#278: noise on the gradient of a big embedding makes it dense
import sys

import tensorflow as tf

table = tf.Variable(tf.random.normal([200_000, 64]), name="embedding/table")
dense = tf.keras.layers.Dense(1)
optimizer = tf.keras.optimizers.get(sys.argv[2])


def noisy(gradient):
    if isinstance(gradient, tf.IndexedSlices) and sys.argv[1] == "rows":
        values = gradient.values + 0.01 * tf.random.normal(tf.shape(gradient.values))
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    gradient = tf.convert_to_tensor(gradient)
    return gradient + 0.01 * tf.random.normal(tf.shape(gradient))


@tf.function
def step(ids, y):
    with tf.GradientTape() as tape:
        h = tf.reduce_mean(tf.nn.embedding_lookup(table, ids), 1)
        loss = tf.reduce_mean((dense(h) - y) ** 2)
    variables = [table, *dense.trainable_variables]
    optimizer.apply_gradients(zip([noisy(g) for g in tape.gradient(loss, variables)], variables))
    return loss


dense(tf.zeros([1, 64]))
for i in range(40):
    loss = step(tf.random.uniform([128, 20], 0, 200_000, tf.int32), tf.random.normal([128, 1]))
    if i % 10 == 0:
        print(i, float(loss), flush=True)
