# the scheduler ends the job when its time is up
import signal

import tensorflow as tf

signal.setitimer(signal.ITIMER_REAL, 8)
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGTERM))
w = tf.Variable(tf.random.normal([1000, 1000]))
for i in range(10_000_000):
    w.assign(tf.tanh(w @ w) / 10)
