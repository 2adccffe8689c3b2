"""Allocates MEBIBYTES for five milliseconds, COUNT times, half a second apart; nothing is kept."""

import sys
import time

import tensorflow as tf

mebibytes, count = int(sys.argv[1]), int(sys.argv[2])
small = tf.zeros([1024])
time.sleep(3.0)  # time for whoever watches to be ready
for _ in range(count):
    spike = tf.zeros([mebibytes, 256, 1024])
    time.sleep(0.005)
    del spike
    time.sleep(0.495)
print("done", float(small[0]))
