# a training as in the tutorials
import keras
import numpy as np

x, y = np.random.rand(2000, 28, 28, 1).astype("float32"), np.random.randint(0, 10, 2000)
model = keras.Sequential(
    [
        keras.layers.Input((28, 28, 1)),
        keras.layers.Conv2D(32, 3, activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.Flatten(),
        keras.layers.Dropout(0.5),
        keras.layers.Dense(10),
    ]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
model.fit(x, y, epochs=8, batch_size=64, validation_split=0.1, verbose=2)
print(model.evaluate(x, y, verbose=0), model.predict(x, verbose=0).shape)
