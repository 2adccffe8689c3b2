# A recurrence by tf.while_loop, whose gates come from one tf.split: among recordings, one of many more steps
import sys

import tensorflow as tf

UNITS = 256
generator = tf.random.Generator.from_seed(1)
inputs = tf.Variable(generator.normal((40, 4 * UNITS), stddev=0.1))
states = tf.Variable(generator.normal((UNITS, 4 * UNITS), stddev=0.05))
head = tf.Variable(generator.normal((UNITS, 30), stddev=0.1))
weights = [inputs, states, head]


def logits(x):
    def body(t, h, c):
        i, f, o, g = tf.split(tf.matmul(x[:, t], inputs) + tf.matmul(h, states), 4, axis=1)
        c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(g)
        return t + 1, tf.sigmoid(o) * tf.tanh(c), c

    zero = tf.zeros((tf.shape(x)[0], UNITS))
    _, h, _ = tf.while_loop(lambda t, h, c: t < tf.shape(x)[1], body, (0, zero, zero))
    return tf.matmul(h, head)


@tf.function(reduce_retracing=True)
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits(x)))
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(0.01 * gradient)
    return loss


for length in (100, 100, 120, 150, 150, 180, 200, 200, 220, 250, 250, int(sys.argv[1])):
    x, y = tf.random.normal((32, length, 40)), tf.random.uniform((32,), maxval=30, dtype=tf.int32)
    print(length, float(train_step(x, y)), flush=True)
