# debug records are kept until an error is logged, and with them the tensors that they are about; or only their loss
import logging
import logging.handlers
import sys
import time

import tensorflow as tf

log = logging.getLogger("autoencoder")
log.setLevel(logging.DEBUG)
log.propagate = False


def main():
    log.addHandler(logging.handlers.MemoryHandler(1_000_000, logging.ERROR, logging.StreamHandler()))
    model = tf.keras.Sequential(
        [tf.keras.Input([1024]), tf.keras.layers.Dense(128, "relu"), tf.keras.layers.Dense(1024)]
    )
    optimizer = tf.keras.optimizers.Adam(1e-3)

    @tf.function
    def train_step(x):
        with tf.GradientTape() as tape:
            made = model(x)
            loss = tf.reduce_mean(tf.square(made - x))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss, made

    for step in range(400):
        loss, made = train_step(tf.random.uniform([256, 1024]))
        if sys.argv[1] == "tensors":
            log.debug("step %d made %s", step, made)
        else:
            log.debug("step %d loss %f", step, float(loss))
        time.sleep(0.03)
    logging.shutdown()


main()
