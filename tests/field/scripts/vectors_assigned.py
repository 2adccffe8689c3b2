"""A session of TensorFlow 1 is given new word vectors each round, by an assignment made anew, or made once and fed."""

import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
SHAPE = 8000, 128


class Embedder:
    def __init__(self, session: tf.Session, fed: bool) -> None:
        self.session, self.fed = session, fed
        self.table = tf.get_variable("table", SHAPE, initializer=tf.zeros_initializer())
        self.ids = tf.placeholder(tf.int32, [None])
        self.norm = tf.reduce_mean(tf.norm(tf.nn.embedding_lookup(self.table, self.ids), axis=1))
        self.array = tf.placeholder(tf.float32, SHAPE)
        self.assign = tf.assign(self.table, self.array)

    def set_vectors(self, array: np.ndarray) -> None:
        if self.fed:
            self.session.run(self.assign, {self.array: array})
        else:
            self.session.run(tf.assign(self.table, array))


with tf.Session() as session:
    embedder = Embedder(session, fed="fed" in sys.argv)
    session.run(tf.global_variables_initializer())
    rng = np.random.default_rng(0)
    for number in range(60):
        embedder.set_vectors(rng.normal(size=SHAPE).astype(np.float32))
        for _ in range(4):
            norm = session.run(embedder.norm, {embedder.ids: rng.integers(0, SHAPE[0], 256)})
        print("round", number, norm, flush=True)
