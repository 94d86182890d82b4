#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Folders of images by class, one of which lacks a class in the middle of the order, and what evaluations of them must have in common.
class_folders.py make DIR | compare DIR
"""
import csv
import json
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
from guide_data import write_grey_png  # noqa: E402

CLASSES, LACKING = 10, 4


def make(folder):
    """Each class a grey of its own under noise: 8 images to train on, 3 to evaluate."""
    rng = np.random.default_rng(0)
    for k in range(CLASSES):
        name = f"{chr(ord('a') + k)}-class"
        for i in range(11):
            pixels = (20 + 22 * k + rng.integers(-15, 16, (32, 32))).astype(np.uint8)
            for kind in ("all",) if i < 8 else ("whole",) if k == LACKING else ("whole", "lacking"):
                (folder / kind / name).mkdir(parents=True, exist_ok=True)
                write_grey_png(folder / kind / name / f"{i}.png", pixels)


def evaluation(path):
    found = [line for line in map(json.loads, path.read_text().splitlines()) if line["event"] == "evaluate"]
    return np.array(found[-1]["confusion"]), found[-1]["accuracy"]


def compare_predictions(folder, whole):
    """Each format names the files in their order and the same answers, which are those that evaluation counted."""
    paths = [str(path.relative_to(folder)) for path in sorted((folder / "lacking").glob("*/*.png"), key=lambda path: (path.parent.name, path.name))]
    classes = sorted(path.name for path in (folder / "whole").iterdir())
    arrays, answers = np.load(folder / "named.npz"), json.loads((folder / "named.json").read_text())
    table = list(csv.DictReader((folder / "named.csv").open(newline="")))
    assert [row["sample"] for row in table] == paths, table[:3]
    assert [row["sample"] for row in answers["predictions"]] == paths and list(arrays["sample"]) == paths, arrays["sample"]
    assert answers["classes"] == classes == list(arrays["classes"]), answers["classes"]
    named = [classes[k] for k in arrays["output"].argmax(1)]
    assert [row["answer"] for row in table] == named == [row["answer"] for row in answers["predictions"]]
    for path, name in zip(paths, named):
        assert whole[classes.index(path.split("/")[1]), classes.index(name)] > 0, (path, name)


def compare(folder):
    whole, _ = evaluation(folder / "whole.jsonl")
    assert whole.sum() == 3 * CLASSES and whole[LACKING].sum() == 3, whole
    others = whole.copy()
    others[LACKING] = 0
    right, total = int(np.trace(others)), int(others.sum())
    assert 3 * right > total, f"it learned too little to tell names from positions:\n{whole}"
    for name in ("in-run", "lacking"):
        confusion, accuracy = evaluation(folder / f"{name}.jsonl")
        assert (confusion == others).all(), f"{name}:\n{confusion}\nnot\n{others}"
        assert abs(accuracy - right / total) < 1e-6, (name, accuracy, right, total)
    compare_predictions(folder, whole)
    print(f"by name: {right} of {total} images right")


if __name__ == "__main__":
    {"make": make, "compare": compare}[sys.argv[1]](pathlib.Path(sys.argv[2]))
