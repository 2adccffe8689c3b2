# a tape over all steps of a solver, each of which keeps several grids
import sys

import tensorflow as tf

GRID = 1024
DT = 1e-3
viscosity = tf.Variable(0.3, name="viscosity")
optimizer = tf.keras.optimizers.Adam(1e-2)


def laplacian(u):
    return tf.roll(u, 1, 0) + tf.roll(u, -1, 0) + tf.roll(u, 1, 1) + tf.roll(u, -1, 1) - 4.0 * u


def advance(u):
    du = viscosity * laplacian(u)
    return u + DT * tf.tanh(du)


def observed():
    return tf.random.normal((GRID, GRID), seed=1)


def main():
    u0 = tf.random.normal((GRID, GRID), seed=0)
    target = observed()
    for epoch in range(2):
        u = u0
        with tf.GradientTape() as tape:
            for step in range(int(sys.argv[1])):
                u = advance(u)
            misfit = tf.reduce_mean(tf.square(u - target))
        grad = tape.gradient(misfit, [viscosity])
        optimizer.apply_gradients(zip(grad, [viscosity]))
        print("epoch", epoch, float(misfit), float(viscosity), flush=True)


if __name__ == "__main__":
    main()
