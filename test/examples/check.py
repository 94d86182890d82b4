# SPDX-License-Identifier: Apache-2.0
"""What the commands of an example have to have made, once run.py ran them.

    check.py NAME FOLDER
"""
import csv
import json
import pathlib
import re
import sys
import zlib

import numpy as np


def lines(path: pathlib.Path) -> list:
    return [json.loads(line) for line in path.read_text().splitlines()]


def weights(path: pathlib.Path) -> dict:
    """The bytes of a safetensors file's tensors, by their names."""
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    tensors = {name: one for name, one in json.loads(data[8:begin]).items() if name != "__metadata__"}
    return {name: np.frombuffer(data[begin:], np.uint8)[slice(*one["data_offsets"])] for name, one in tensors.items()}


def cifar(folder: pathlib.Path) -> None:
    labels = np.fromfile(folder / "cifar-10-batches-bin/test_batch.bin", np.uint8).reshape(-1, 3073)[:, 0]
    with open(folder / "answers.csv", newline="") as file:
        answers = [row["answer"] for row in csv.DictReader(file)]
    evaluation = next(line for line in lines(folder / "evaluation.jsonl") if line["event"] == "evaluate")
    names = lines(folder / "evaluation.jsonl")[0]["classes"]
    right = np.mean([names[label] == answer for label, answer in zip(labels, answers, strict=True)])
    assert right == evaluation["accuracy"] > 0.75, (right, evaluation["accuracy"])  # by chance 0.1
    assert np.trace(evaluation["confusion"]) / len(labels) == right
    print(f"{right:.1%} of {len(labels)} pictures")


def grey_png(path: pathlib.Path) -> np.ndarray:
    """Bytes (height, width) of a PNG of 8 bits of grey."""
    data, at, packed = path.read_bytes(), 8, b""
    while at < len(data):
        length, kind = int.from_bytes(data[at:at + 4], "big"), data[at + 4:at + 8]
        body, at = data[at + 8:at + 8 + length], at + 12 + length
        if kind == b"IHDR":
            width, height = (int.from_bytes(body[i:i + 4], "big") for i in (0, 4))
            assert body[8:] == bytes([8, 0, 0, 0, 0]), body
        packed += body if kind == b"IDAT" else b""
    rows, before = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, width + 1), [0] * (width + 1)
    pixels = []
    for kind, *row in rows.tolist():
        line = [0]  # the pixel left of the first one
        for x, value in enumerate(row, 1):
            left, up, corner = line[x - 1], before[x], before[x - 1]
            paeth = min((left, up, corner), key=lambda near: abs(left + up - corner - near))
            line.append((value + (0, left, up, (left + up) // 2, paeth)[kind]) % 256)
        pixels.append(line[1:])
        before = line
    return np.array(pixels, np.uint8)


def unet(folder: pathlib.Path) -> None:
    masks = sorted((folder / "shapes/test/masks").iterdir())
    assert sorted(path.name for path in (folder / "answers").iterdir()) == [path.name for path in masks]
    table = np.zeros((3, 3))
    for path in masks:
        mask, answer = grey_png(path), grey_png(folder / "answers" / path.name)
        assert mask.shape == answer.shape
        counts = mask != 255
        np.add.at(table, (mask[counts], answer[counts]), 1)
    iou = np.diag(table) / (table.sum(0) + table.sum(1) - np.diag(table))
    assert min(iou) > 0.4, iou
    print("intersection over union:", iou)


def gpt(folder: pathlib.Path) -> None:
    words = lambda name: re.findall(r"[a-z]+", (folder / name).read_text().lower())  # noqa: E731
    known, prompt = set(words("train.txt")), "the old sailor"
    for name in ("greedy.txt", "drawn.txt"):
        written = words(name)[:-1]  # the last one may be cut off
        assert " ".join(written).startswith(prompt) and len(written) > 20, written
        share = np.mean([word in known for word in written])
        assert share > 0.8, (share, written)
        assert len(set(written)) > 8, written
        print(f"{name}: {share:.0%} of {len(written)} words are of the language")
    assert words("greedy.txt") != words("drawn.txt")


def timm(folder: pathlib.Path) -> None:
    said = re.search(r"PyTorch: accuracy ([0-9.]+) on 80 photos", sys.stdin.read())
    evaluated = [line["accuracy"] for line in lines(folder / "run.jsonl") if line["event"] == "evaluate"][-1]
    assert evaluated > 0.7 and abs(evaluated - float(said[1])) < 0.03, (evaluated, said[0])  # by chance 0.25; a pixel more or less from resizing
    first, head, tuned = (weights(folder / name) for name in ("model.safetensors", "run1/checkpoint.safetensors", "tuned.safetensors"))
    moved = lambda after: {name for name in tuned if not np.array_equal(first[name], after[name])}  # noqa: E731
    assert moved(head) == {"fc.weight", "fc.bias"}, moved(head)
    assert moved(tuned) == set(tuned) == {name for name in first if not name.endswith("num_batches_tracked")}
    print(f"accuracy {evaluated:.1%}, {said[0]}")


if __name__ == "__main__":
    {"cifar": cifar, "unet": unet, "gpt": gpt, "timm": timm}[sys.argv[1]](pathlib.Path(sys.argv[2]))
