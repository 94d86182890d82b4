# SPDX-License-Identifier: Apache-2.0
"""Small files under the names that the pages of docs/ use: arrays, image folders, masks, CIFAR and IDX files, a table, tokens; numbers are drawn, pictures
are the fuzzer's. They fit the stand-ins that guide.py compiles: images of 3 x 16 x 16 in 10 classes, 16 columns in 5, windows of 12 tokens of 23.
"""
import pathlib
import shutil
import struct
import zlib

import numpy as np

PICTURES = pathlib.Path(__file__).resolve().parents[1] / "fuzz/corpus/image"


def arrays(folder, samples, shape, classes, rng):
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "input.npy", rng.standard_normal((samples, *shape)).astype(np.float32))
    np.save(folder / "target.npy", rng.integers(classes, size=samples))


def image_folder(folder, samples):
    for name in ("daisy", "rose"):
        (folder / name).mkdir(parents=True)
        for i in range(samples // 2):
            source = PICTURES / ("jpeg.png" if i % 2 else "progressive.png")  # JPEG both, whatever their names say
            shutil.copy(source, folder / name / f"{i}.jpg")


def masks(folder, samples, rng):
    """Images and a PNG of grey values for each: four classes and 255."""
    for name in ("images", "masks"):
        (folder / name).mkdir(parents=True)
    for i in range(samples):
        source = PICTURES / "jpeg.png"
        shutil.copy(source, folder / f"images/{i}.jpg")
        width, height = size_of_jpeg(source.read_bytes())
        write_grey_png(folder / f"masks/{i}.png", rng.choice([0, 1, 2, 3, 255], size=(height, width)).astype(np.uint8))


def size_of_jpeg(data):
    """Width and height, from the first segment that begins a frame."""
    at = 2
    while data[at + 1] not in (0xC0, 0xC1, 0xC2):
        at += 2 + int.from_bytes(data[at + 2:at + 4], "big")
    height, width = struct.unpack(">HH", data[at + 5:at + 9])
    return width, height


def write_grey_png(path, values):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", values.shape[1], values.shape[0], 8, 0, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in values)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def cifar(folder, rng):
    folder.mkdir()
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        labels = rng.integers(10, size=(64, 1), dtype=np.uint8)
        pixels = rng.integers(256, size=(64, 3072), dtype=np.uint8)
        (folder / f"{name}.bin").write_bytes(np.hstack([labels, pixels]).tobytes())


def idx(prefix, samples, rng):
    prefix.parent.mkdir(exist_ok=True)
    for kind, shape, most in (("images-idx3", (samples, 28, 28), 256), ("labels-idx1", (samples,), 10)):
        head = struct.pack(f">I{len(shape)}I", 0x800 + len(shape), *shape)
        values = rng.integers(most, size=shape, dtype=np.uint8)
        pathlib.Path(f"{prefix}-{kind}-ubyte").write_bytes(head + values.tobytes())


def table(path, rng):
    lines = [",".join([f"x{i}" for i in range(16)] + ["target"])]
    for row in rng.standard_normal((80, 16)):
        lines.append(",".join([f"{x:.4f}" for x in row] + [str(rng.integers(5))]))
    path.write_text("\n".join(lines) + "\n")


def prepare(folder):
    """Writes all of them into `folder`."""
    rng = np.random.default_rng(1)
    for place in (folder, folder / "build/demo"):
        arrays(place / "train", 128, (3, 16, 16), 10, rng)
        arrays(place / "test", 40, (3, 16, 16), 10, rng)
    arrays(folder / "wide", 16, (3, 16, 20), 10, rng)
    arrays(folder / "labels", 16, (3, 16, 16), 12, rng)
    arrays(folder / "flowers", 32, (3, 64, 64), 5, rng)
    shutil.copytree(folder / "test", folder / "new")
    image_folder(folder / "photos/train", 64)
    image_folder(folder / "photos/validation", 16)
    shutil.copytree(folder / "photos", folder / "damaged")
    (folder / "damaged/train/rose/7.jpg").write_bytes(b"no picture")
    masks(folder / "streets", 20, rng)
    shutil.copytree(folder / "streets/images", folder / "streets/new")
    cifar(folder / "cifar-10-batches-bin", rng)
    idx(folder / "mnist/train", 128, rng)
    idx(folder / "mnist/t10k", 32, rng)
    table(folder / "table.csv", rng)
    for name in ("train.bin", "val.bin"):
        (folder / name).write_bytes(rng.integers(23, size=2000).astype("<u2").tobytes())
