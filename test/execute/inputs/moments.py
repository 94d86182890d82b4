# SPDX-License-Identifier: Apache-2.0
"""Checks predictions of test/models/tiny/draws: PREDICTIONS INPUT. Limits are six standard errors of the means of 4096 numbers."""
import sys

import numpy as np

GAIN = 0.5
outputs, x = np.load(sys.argv[1]) / GAIN, np.load(sys.argv[2])
normal, uniform, marks, mask = np.split(outputs, 4, 1)
probability = 1 / (1 + np.exp(-x))


def near(what, got, wanted, deviation):
    assert abs(got - wanted) < 6 * deviation / normal.size**0.5, f"{what}: {got}, expected {wanted}"


near("mean of normal numbers", normal.mean(), 0, 1)
near("variance of normal numbers", (normal**2).mean(), 1, 2**0.5)
near("fourth moment of normal numbers", (normal**4).mean(), 3, 96**0.5)
near("neighbours of normal numbers", (normal[:, 1:] * normal[:, :-1]).mean(), 0, 1)
near("normal and uniform ones", (normal * uniform).mean(), 0, 1.6)
near("mean of uniform numbers", uniform.mean(), 1, (16 / 12) ** 0.5)
near("variance of uniform numbers", ((uniform - 1) ** 2).mean(), 16 / 12, 1.2)
assert uniform.min() >= -1 and uniform.max() < 3
assert set(np.unique(marks)) == {0, 1} == set(np.unique(mask))
near("marks", (marks - probability).mean(), 0, 0.5)
near("marks by their probability", ((marks - probability) * x).mean(), 0, 0.5)
near("mask", mask.mean(), 0.25, 0.44)
assert len(np.unique(outputs[:, :256], axis=0)) == len(outputs), "samples share their numbers"
