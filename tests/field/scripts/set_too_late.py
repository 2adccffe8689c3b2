# the settings come after the first operation, and the error is swallowed
import tensorflow as tf

w = tf.Variable(tf.random.normal([1000, 1000]))
cpu = tf.config.list_physical_devices("CPU")[0]
try:
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration() for _ in range(2)])
except RuntimeError:
    pass
for _ in range(300):
    w.assign(tf.tanh(w @ w) / 10)
print(len(tf.config.list_logical_devices("CPU")), "device")
