# the training runs well for a while, then a record has no label
import keras
import numpy as np

model = keras.Sequential([keras.layers.Input((256,)), keras.layers.Dense(1024), keras.layers.Dense(10)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
records = [{"x": np.random.rand(64, 256).astype("float32"), "label": np.random.randint(0, 10, 64)} for _ in range(200)]
del records[150]["label"]
for i, record in enumerate(records):
    loss = model.train_on_batch(record["x"], record["label"])
    if i % 25 == 0:
        print("batch", i, loss, flush=True)
