#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Crops of scikit-learn's two photographs as a data set, for what needs real images and not many of them: the class of a crop is its photograph and its
quarter of it.

    tools/bench/photo_crops.py FOLDER [--input images] [--size 224] [--count 64]

Writes FOLDER/INPUT.npy (COUNT,3,SIZE,SIZE, float32 with mean 0 and deviation 1 by channel) and FOLDER/target.npy."""
import argparse
import pathlib

import numpy as np
from sklearn.datasets import load_sample_images

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("--input", default="images")
parser.add_argument("--size", type=int, default=224)
parser.add_argument("--count", type=int, default=64)
options = parser.parse_args()
random = np.random.default_rng(1)
photos = [np.asarray(image, np.float32) / 255 for image in load_sample_images().images]
crops, classes = [], []
for i in range(options.count):
    photo = photos[i % 2]
    height, width = (extent - options.size for extent in photo.shape[:2])
    top, left = random.integers(0, height + 1), random.integers(0, width + 1)
    crop = photo[top:top + options.size, left:left + options.size]
    crops.append(crop[:, ::-1] if random.integers(2) else crop)
    classes.append(i % 2 * 4 + (2 * top > height) * 2 + (2 * left > width))
images = np.stack(crops).transpose(0, 3, 1, 2)
images = (images - images.mean((0, 2, 3), keepdims=True)) / images.std((0, 2, 3), keepdims=True)
options.folder.mkdir(parents=True, exist_ok=True)
np.save(options.folder / f"{options.input}.npy", np.ascontiguousarray(images, np.float32))
np.save(options.folder / "target.npy", np.array(classes, np.int64))
