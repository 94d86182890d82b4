#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what library.py's models are trained on.

    test/models/library_data.py FOLDER    data/ (48 samples), few/ (45 of them)"""
import pathlib
import sys

import numpy as np

folder = pathlib.Path(sys.argv[1])
random = np.random.default_rng(1)
x, y = random.random((48, 16), np.float32), random.integers(0, 5, 48)
for name, count in (("data", 48), ("few", 45)):
    (folder / name).mkdir(parents=True, exist_ok=True)
    np.save(folder / name / "input.npy", x[:count])
    np.save(folder / name / "target.npy", y[:count])
