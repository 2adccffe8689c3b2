# an own loop with two models, as for a GAN
import tensorflow as tf


def dense(sizes):
    return tf.keras.Sequential([tf.keras.layers.Dense(size, activation="relu") for size in sizes])


generator, critic = dense([512, 1024, 784]), dense([1024, 512, 1])
optimizers = tf.keras.optimizers.Adam(1e-4), tf.keras.optimizers.Adam(1e-4)


@tf.function
def step(real):
    with tf.GradientTape() as first, tf.GradientTape() as second:
        fake = generator(tf.random.normal([128, 64]))
        own = -tf.reduce_mean(critic(fake))
        loss = -own - tf.reduce_mean(critic(real))
    g, c = generator.trainable_variables, critic.trainable_variables
    optimizers[0].apply_gradients(zip(first.gradient(own, g), g))
    optimizers[1].apply_gradients(zip(second.gradient(loss, c), c))
    return loss


for i in range(400):
    loss = step(tf.random.normal([128, 784]))
    if i % 50 == 0:
        print("step", i, float(loss), flush=True)
