# SPDX-License-Identifier: Apache-2.0
"""What the commands of an example have to have made, once run.py ran them.

    check.py NAME FOLDER
"""
import csv
import json
import pathlib
import sys

import numpy as np


def lines(path: pathlib.Path) -> list:
    return [json.loads(line) for line in path.read_text().splitlines()]


def cifar(folder: pathlib.Path) -> None:
    labels = np.fromfile(folder / "cifar-10-batches-bin/test_batch.bin", np.uint8).reshape(-1, 3073)[:, 0]
    with open(folder / "answers.csv", newline="") as file:
        answers = [row["answer"] for row in csv.DictReader(file)]
    evaluation = next(line for line in lines(folder / "evaluation.jsonl") if line["event"] == "evaluate")
    names = lines(folder / "evaluation.jsonl")[0]["classes"]
    right = np.mean([names[label] == answer for label, answer in zip(labels, answers, strict=True)])
    assert right == evaluation["accuracy"] > 0.9, (right, evaluation["accuracy"])  # by chance 0.1
    assert np.trace(evaluation["confusion"]) / len(labels) == right
    print(f"{right:.1%} of {len(labels)} pictures")


if __name__ == "__main__":
    {"cifar": cifar}[sys.argv[1]](pathlib.Path(sys.argv[2]))
