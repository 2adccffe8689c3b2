"""Fits a model in state space to the end of a sequence of N steps: ``scan_gradient.py N``.

The simulation alone keeps one state. The gradient needs what each step has computed.
"""

import sys

import tensorflow as tf

STEPS, BATCH, STATES, INPUTS = int(sys.argv[1]), 64, 256, 4


class StateSpace(tf.Module):
    """The next state is a function of the last one and of the input."""

    def __init__(self) -> None:
        self.states = tf.Variable(tf.random.normal([STATES, STATES]) * 0.02)
        self.inputs = tf.Variable(tf.random.normal([INPUTS, STATES]) * 0.1)

    def step(self, state: tf.Tensor, inputs: tf.Tensor) -> tf.Tensor:
        """Return the next state."""
        mixed = state @ self.states + inputs @ self.inputs
        return tf.tanh(mixed * tf.sigmoid(tf.nn.softplus(mixed)))


model = StateSpace()
optimizer = tf.keras.optimizers.Adam(1e-3)
first = tf.zeros([BATCH, STATES])


@tf.function
def simulate(inputs: tf.Tensor) -> tf.Tensor:
    """Return the last state."""
    return tf.foldl(model.step, inputs, initializer=first)


@tf.function
def fit_step(inputs: tf.Tensor, wanted: tf.Tensor) -> tf.Tensor:
    """Improve the model once, and return the loss."""
    with tf.GradientTape() as tape:
        states = tf.scan(model.step, inputs, initializer=first)
        loss = tf.reduce_mean((states[-1, :, 0] - wanted) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


sequence, wanted = tf.random.normal([STEPS, BATCH, INPUTS]), tf.random.normal([BATCH])
for _ in range(5):
    simulate(sequence)
for _ in range(3):
    print(f"loss {float(fit_step(sequence, wanted)):.4f}", flush=True)
