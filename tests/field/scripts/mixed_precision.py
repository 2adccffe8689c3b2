# after "mixed precision does not save memory": mixed_bfloat16 against float32
import sys

import keras
import numpy as np

keras.mixed_precision.set_global_policy(sys.argv[1])
layers = [keras.layers.Dense(2048, activation="relu") for _ in range(4)]
model = keras.Sequential([keras.layers.Input((1024,)), *layers, keras.layers.Dense(1, dtype="float32")])
model.compile("adam", "mse", jit_compile=False)
x, y = np.random.rand(2048, 1024).astype("float32"), np.random.rand(2048, 1).astype("float32")
model.fit(x, y, batch_size=128, epochs=2, verbose=2)
