# a batch that does not fit is caught, and the training goes on with one of half the size
import tensorflow as tf

layers = [tf.keras.layers.Conv2D(32, 3, padding="same", activation="relu") for _ in range(3)]
model = tf.keras.Sequential([tf.keras.layers.Input((64, 64, 3)), *layers, tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.01)


def step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(tf.random.uniform([batch, 64, 64, 3]))))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return float(loss)


batch, done = 128, 0
while done < 20:
    try:
        loss = step(batch)
        done += 1
    except tf.errors.ResourceExhaustedError:
        batch //= 2
        print("a batch of", batch, flush=True)
print("done", loss)
