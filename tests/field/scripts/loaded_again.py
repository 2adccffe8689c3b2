# after tensorflow#40171: a server loads each version of a model, and keeps the last N of them
import sys
import tempfile

import keras
import tensorflow as tf

folder = tempfile.mkdtemp() + "/m"
model = keras.Sequential([keras.layers.Input((512,)), keras.layers.Dense(2048), keras.layers.Dense(512)])
model.export(folder, verbose=False)
served = {}
for version in range(60):
    served.pop(version - int(sys.argv[1]), None)
    served[version] = tf.saved_model.load(folder)
    served[version].serve(tf.ones([4, 512]))
    print("version", version, flush=True)
