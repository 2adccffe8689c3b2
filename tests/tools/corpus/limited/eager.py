"""Operations one by one, with intermediate results of several sizes."""

import tensorflow as tf

weights = [tf.Variable(tf.random.stateless_normal([side, side], [0, side])) for side in (256, 512, 1024)]
for _ in range(60):
    for weight in weights:
        side = weight.shape[0]
        product = tf.matmul(tf.ones([4 * side, side]), weight)
        weight.assign_sub(1e-6 * tf.matmul(product, product, transpose_a=True))
print("done")
