# the trials of trials_keep_models.py, ten in each process
import multiprocessing


def trial(units):
    import keras
    import numpy as np

    x, y = np.random.rand(512, 256).astype("float32"), np.random.rand(512, 1).astype("float32")
    layers = [keras.layers.Dense(units, activation="relu") for _ in range(2)]
    model = keras.Sequential([keras.layers.Input((256,)), *layers, keras.layers.Dense(1)])
    model.compile("adam", "mse")
    return model.fit(x, y, epochs=1, batch_size=64, verbose=0).history["loss"][-1]


if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=10) as pool:
        for t, loss in enumerate(pool.imap(trial, [1536] * 20)):
            print("trial", t, loss, flush=True)
