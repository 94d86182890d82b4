#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the first step's gradients of a program that rounds activations, but keeps their signs, with those of one that keeps them.

    test/models/signs.py KEEP.safetensors ROUNDED.safetensors

Gradients of activations depend on weights and on where ReLUs let them through, not on values of activations: those of biases, which are their
sums, must have the same bits. Those of some weights of convolutions must differ, or nothing was rounded, and all be near."""
import sys

import numpy as np

from compare import load, relative


def main():
    keep, rounded = load(sys.argv[1]), load(sys.argv[2])
    assert keep.keys() == rounded.keys(), sorted(keep.keys() ^ rounded.keys())
    biases = [name for name in keep if keep[name].ndim == 1]
    errors = {name: relative(rounded[name], keep[name]) for name in keep if keep[name].ndim > 1}
    assert biases and errors, sorted(keep)
    for name in biases:
        assert np.array_equal(keep[name].view(np.uint32), rounded[name].view(np.uint32)), f"{name}: gradients of a bias differ"
    assert max(errors.values()) > 1e-6, f"nothing was rounded: {errors}"
    assert max(errors.values()) < 0.3, f"gradients are far off: {errors}"


if __name__ == "__main__":
    main()
