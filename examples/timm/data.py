#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes photos/train and photos/test, a folder for each of four classes with PNG files in it, unless there is a folder photos already: leaves, bricks, waves and
pebbles as far as formulas make them, in colours that overlap. Needs numpy and Pillow, which timm brings."""
import pathlib

import numpy as np
from PIL import Image


def texture(kind: int, rng: np.random.Generator) -> np.ndarray:
    """Between 0 and 1, (height, width)."""
    height, width = rng.integers(90, 140, size=2)
    y, x = np.mgrid[:height, :width] / rng.uniform(9, 14)
    angle = rng.uniform(-0.3, 0.3)
    x, y = x * np.cos(angle) - y * np.sin(angle), x * np.sin(angle) + y * np.cos(angle)
    if kind == 0:
        return abs(np.sin(3 * (y + 0.8 * abs((x % 2) - 1))))
    if kind == 1:
        return ((y % 1 > 0.15) & ((x / 2 + (y // 1 % 2) / 2) % 1 > 0.1)).astype(float)
    if kind == 2:
        return 0.5 + 0.5 * np.sin(4 * y + 1.5 * np.sin(x))
    return (np.hypot(x % 1 - 0.5, y % 1 - 0.5) < rng.uniform(0.3, 0.45)).astype(float)


def photo(kind: int, rng: np.random.Generator) -> Image.Image:
    colour = np.array([(70, 130, 50), (150, 70, 50), (50, 90, 150), (130, 120, 100)][kind]) + rng.integers(-45, 46, size=3)
    pixels = colour * (0.4 + 0.8 * texture(kind, rng)[..., None])
    return Image.fromarray(np.clip(pixels + rng.normal(0, 20, size=pixels.shape), 0, 255).astype(np.uint8))


def main() -> None:
    if pathlib.Path("photos").exists():
        print("photos is there already and stays as it is")
        return
    rng = np.random.default_rng(1)
    for part, count in (("train", 60), ("test", 20)):
        for kind, name in enumerate(("leaves", "bricks", "waves", "pebbles")):
            folder = pathlib.Path("photos", part, name)
            folder.mkdir(parents=True)
            for i in range(count):
                photo(kind, rng).save(folder / f"{i:03}.png")
    print("240 photos to train, 80 to test in photos")


main()
