# a language model whose first step makes one-hot labels of a large vocabulary; or sparse labels
import sys

import numpy as np
import tensorflow as tf

WORDS = 30_000


class LanguageModel(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.embedding = tf.keras.layers.Embedding(WORDS, 32)
        self.gru = tf.keras.layers.GRU(32, return_sequences=True)
        self.head = tf.keras.layers.Dense(WORDS)

    def call(self, tokens):
        return self.head(self.gru(self.embedding(tokens)))

    def train_step(self, data):
        tokens, following = data
        with tf.GradientTape() as tape:
            logits = self(tokens, training=True)
            if sys.argv[1] == "sparse":
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(following, logits))
            else:
                chances = tf.math.log(tf.nn.softmax(logits) + 1e-9)
                loss = -tf.reduce_mean(tf.reduce_sum(tf.one_hot(following, WORDS) * chances, -1))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss}


text = np.random.default_rng(0).integers(0, WORDS, size=(128, 41)).astype("int32")
model = LanguageModel()
model.compile(optimizer=tf.keras.optimizers.SGD(0.1))
model.fit(text[:, :-1], text[:, 1:], batch_size=16, epochs=2, verbose=2)
