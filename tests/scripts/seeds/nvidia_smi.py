"""The figure of nvidia-smi for the card, beside those of TensorFlow and NVML for the process."""

import shutil
import subprocess

import tensorflow as tf
from seen import tell

gpus = tf.config.list_physical_devices("GPU")
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
kept = tf.random.normal([256, 256, 1024] if gpus else [16, 256, 1024])
said = None
if command := shutil.which("nvidia-smi"):
    query = [command, "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    said = subprocess.run(query, capture_output=True, text=True, check=False).stdout.split()
tell(gpus=len(gpus), nvidia_smi_mib=said, bytes=int(kept.shape.num_elements()) * 4)
