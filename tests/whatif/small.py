"""A training whose batches grow, for a trace with everything: regions that double, free chunks, several threads."""

import tensorflow as tf

SHAPES = [(3, 3, 3, 32), (3, 3, 32, 32), (60 * 60 * 32, 64), (64, 10)]
weights = [tf.Variable(tf.random.normal(shape, stddev=0.05)) for shape in SHAPES]
moments = [[tf.Variable(tf.zeros(shape)) for shape in SHAPES] for _ in range(2)]


def step(images: tf.Tensor, labels: tf.Tensor) -> None:
    first, second, wide, last = weights
    with tf.GradientTape() as tape:
        found = tf.nn.relu(tf.nn.conv2d(images, first, 1, "VALID"))
        found = tf.nn.relu(tf.nn.conv2d(found, second, 1, "VALID"))
        found = tf.matmul(tf.reshape(found, [-1, SHAPES[2][0]]), wide, name="wide")
        loss = tf.reduce_mean(tf.square(tf.matmul(found, last) - labels))
    for weight, gradient, mean, square in zip(weights, tape.gradient(loss, weights), *moments, strict=True):
        mean.assign(0.9 * mean + 0.1 * gradient)
        square.assign(0.999 * square + 0.001 * tf.square(gradient))
        weight.assign_sub(1e-3 * mean / (tf.sqrt(square) + 1e-7))


within = tf.function(step)
train = tf.function(lambda images, labels: within(images, labels))  # a call within a graph, as Keras has

for batch in (8, 32, 64):
    data = tf.data.Dataset.from_tensors((tf.random.normal((batch, 64, 64, 3)), tf.zeros((batch, 10)))).repeat(3)
    for images, labels in data.prefetch(2):
        train(images, labels)
print("done")
