#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data for a model whose values are hard on codecs: folders below OUT with the targets of DATA and the inputs changed.

    test/models/odd_data.py DATA OUT

zero: nothing but zeros. denormal: every value is subnormal. dense: none is zero. huge: magnitudes around 1e4. nan, inf, -inf: one value of the
second batch of eight."""
import os
import shutil
import sys

import numpy


def main():
    data, out = sys.argv[1:]
    x = numpy.load(os.path.join(data, "input.npy"))
    changed = {"zero": 0 * x, "denormal": x * numpy.float32(1e-40), "dense": numpy.where(x >= 0, x + 1, x - 1), "huge": x * 1e4}
    assert (changed["dense"] != 0).all() and (abs(changed["denormal"]) < numpy.finfo(numpy.float32).tiny).all()
    for name in ("nan", "inf", "-inf"):
        changed[name] = x.copy()
        changed[name][9, 1, 3, 4] = float(name)
    for name, values in changed.items():
        folder = os.path.join(out, name)
        os.makedirs(folder, exist_ok=True)
        numpy.save(os.path.join(folder, "input.npy"), values.astype(numpy.float32))
        shutil.copy(os.path.join(data, "target.npy"), folder)


main()
