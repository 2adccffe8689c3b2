"""``python flood.py MEGABYTES FILE``: prints so much, a line at a time as programs do.

Then it writes the time of the beginning and of the end of the printing into FILE.
"""

import sys
import time
from pathlib import Path

megabytes, path = int(sys.argv[1]), Path(sys.argv[2])
line = "2024-05-01 12:00:00,000 INFO trainer: epoch 3 step {:8} loss 0.123456 accuracy 0.987654 lr 1e-3\n"
begun = time.time()
written, number = 0, 0
while written < megabytes * 1_000_000:
    text = line.format(number)
    sys.stdout.write(text)
    written += len(text)
    number += 1
sys.stdout.flush()
path.write_text(f"{begun} {time.time()}")
