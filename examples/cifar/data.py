#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a small set of pictures in CIFAR-10's binary format into cifar-10-batches-bin, unless that folder is there already: ten classes, five shapes in warm
and cold colours, at random places and sizes over noise. Either way classes.toml gets the names of the folder's classes, as a recipe for the program. Needs numpy."""
import pathlib

import numpy as np

FOLDER = pathlib.Path("cifar-10-batches-bin")
SIZE, TRAIN, TEST = 32, 400, 500  # pixels; pictures in each of the five files, and in the test
CLASSES = [f"{colour} {shape}" for shape in ("disc", "square", "triangle", "cross", "ring") for colour in ("warm", "cold")]


def shape_of(kind: int, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Which points of the plane belong to a shape of about the radius 1."""
    square, disc = np.maximum(abs(x), abs(y)), np.hypot(x, y)
    return [disc < 1, square < 0.85, (y < 0.8) & (y > 2 * abs(x) - 1), (square < 1) & (np.minimum(abs(x), abs(y)) < 0.3), (disc < 1) & (disc > 0.55)][kind]


def picture(label: int, rng: np.random.Generator) -> np.ndarray:
    """Bytes (3, SIZE, SIZE) of a class."""
    radius = rng.uniform(8, 13)
    left, top = rng.uniform(radius, SIZE - radius, size=2)
    y, x = np.mgrid[:SIZE, :SIZE]
    inside = shape_of(label // 2, (x - left) / radius, (y - top) / radius)
    strong, weak = rng.integers(160, 256), rng.integers(0, 90, size=2)
    colour = np.array([strong, *weak] if label % 2 == 0 else [*weak, strong])
    pixels = np.where(inside, colour[:, None, None], rng.integers(0, 130))
    return np.clip(pixels + rng.normal(0, 20, size=pixels.shape), 0, 255).astype(np.uint8)


def write(path: pathlib.Path, count: int, rng: np.random.Generator) -> None:
    labels = rng.permutation(count) % len(CLASSES)
    path.write_bytes(b"".join(bytes([label]) + picture(label, rng).tobytes() for label in labels))


def main() -> None:
    if not FOLDER.exists():
        FOLDER.mkdir()
        rng = np.random.default_rng(1)
        for number in range(1, 6):
            write(FOLDER / f"data_batch_{number}.bin", TRAIN, rng)
        write(FOLDER / "test_batch.bin", TEST, rng)
        (FOLDER / "batches.meta.txt").write_text("\n".join(CLASSES) + "\n")
        print(f"{5 * TRAIN} pictures to train, {TEST} to test in {FOLDER}")
    names = (FOLDER / "batches.meta.txt").read_text().split("\n")
    pathlib.Path("classes.toml").write_text(f"class = {[name for name in names if name]}\n")


main()
