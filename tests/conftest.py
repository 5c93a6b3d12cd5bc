"""Tests run side by side and are small: one thread each, set before torch is loaded."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
