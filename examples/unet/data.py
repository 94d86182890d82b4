#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes pictures and their masks as PNG: shapes/train and shapes/test, with images/ and masks/ each. Class 0 is the background, 1 a disc, 2 a cross, whose pixels
are rare; 255 marks the edges of both, where nobody can say. Pictures have sizes of their own. Needs numpy."""
import pathlib
import struct
import zlib

import numpy as np


def write_png(path: pathlib.Path, pixels: np.ndarray) -> None:
    """Bytes (height, width), grey, or (height, width, 3)."""
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 2 if pixels.ndim == 3 else 0, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def scene(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A picture, bytes (height, width, 3), and its mask, (height, width)."""
    height, width = rng.integers(56, 73, size=2)
    y, x = np.mgrid[:height, :width]
    mask, image = np.zeros((height, width), np.uint8), np.full((height, width, 3), rng.integers(20, 110, size=3), np.float64)
    for number in [1] * rng.integers(1, 3) + [2] * rng.integers(0, 3):
        radius = rng.uniform(9, 16) if number == 1 else rng.uniform(7, 10)
        across, down = abs(x - rng.uniform(radius, width - radius)), abs(y - rng.uniform(radius, height - radius))
        edge = radius - np.hypot(across, down) if number == 1 else np.minimum(radius - np.maximum(across, down), radius / 3 - np.minimum(across, down))
        image[edge > 0] = rng.integers(120, 250, size=3)
        mask[edge > 0] = number
        mask[abs(edge) < 0.7] = 255
    return np.clip(image + rng.normal(0, 12, size=image.shape), 0, 255).astype(np.uint8), mask


def main() -> None:
    rng = np.random.default_rng(1)
    for part, count in (("train", 160), ("test", 40)):
        for name in ("images", "masks"):
            pathlib.Path("shapes", part, name).mkdir(parents=True, exist_ok=True)
        for i in range(count):
            for name, pixels in zip(("images", "masks"), scene(rng)):
                write_png(pathlib.Path("shapes", part, name, f"{i:03}.png"), pixels)
    print("160 pictures to train, 40 to test in shapes")


main()
