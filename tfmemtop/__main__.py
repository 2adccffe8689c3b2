"""``python -m tfmemtop`` is ``tfmemtop``."""

import sys

from tfmemtop.cli import main

sys.exit(main())
