# SPDX-License-Identifier: Apache-2.0
"""A model with two targets of classes and one of numbers, and tables for it, for test/execute/class-names.test.

    class_names.py make FOLDER      writes them
    class_names.py check FOLDER     predictions of all formats, and what a checkpoint says, against one another
    class_names.py standardize FOLDER   writes the table to evaluate on as arrays, by means and deviations of that to train on, and by its own
    class_names.py measured FOLDER  what evaluations of these logged against those of the table
"""
import csv
import json
import pathlib
import sys

import numpy

KINDS, COATS = ["cat", "dog", "owl"], ["long", "short"]


def make(folder):
    import torch

    class Pets(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.kind, self.coat, self.price = (torch.nn.Linear(*size) for size in ((2, 6), (6, 3), (6, 2), (6, 1)))

        def forward(self, x):
            x = torch.tanh(self.body(x))
            return self.price(x), self.kind(x), self.coat(x)

    torch.manual_seed(5)
    torch.onnx.export(Pets(), torch.zeros(4, 2), folder / "pets.onnx", input_names=["x"], output_names=["price", "kind", "coat"], dynamo=False)
    random = numpy.random.default_rng(5)
    for name, kinds in (("train", KINDS), ("test", ["owl", "dog"])):  # of which one is missing, and the order is another
        with open(folder / f"{name}.csv", "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["coat", "f1", "kind", "f2", "price"])
            for _ in range(24):
                kind, coat = random.choice(kinds), random.choice(COATS)
                f1 = KINDS.index(kind) + 0.3 * random.standard_normal()
                rows.writerow([coat, f"{f1:.3f}", kind, f"{COATS.index(coat) + 0.3 * random.standard_normal():.3f}", f"{f1 / 2:.3f}"])
    save(folder / "arrays", *read(folder / "train.csv"))


def read(path):
    table = list(csv.DictReader(open(path)))
    return table, numpy.array([[row["f1"], row["f2"]] for row in table], dtype="f8")


def save(folder, table, inputs):
    folder.mkdir(exist_ok=True)
    numpy.save(folder / "input.npy", inputs.astype("f4"))
    numpy.save(folder / "target_price.npy", numpy.array([[row["price"]] for row in table], dtype="f4"))
    for name, names in (("kind", KINDS), ("coat", COATS)):
        numpy.save(folder / f"target_{name}.npy", numpy.array([names.index(row[name]) for row in table]))


def standardize(folder):
    _, trained = read(folder / "train.csv")
    table, inputs = read(folder / "test.csv")
    for name, known in (("hand", trained), ("own", inputs)):
        save(folder / f"by-{name}", table, (inputs - known.mean(0)) / known.std(0))


def measured(folder):
    loss = {}
    for name in ("in-run", "by-weights", "by-hand", "by-own"):
        lines = map(json.loads, (folder / f"{name}.jsonl").read_text().splitlines())
        loss[name] = [line["loss"] for line in lines if line["event"] == "evaluate"][-1]
    assert loss["in-run"] == loss["by-weights"], loss
    numpy.testing.assert_allclose(loss["by-weights"], loss["by-hand"], rtol=1e-5)
    assert abs(loss["by-own"] / loss["by-hand"] - 1) > 0.01, loss
    print("as by hand, by means of what was trained on")


def check(folder):
    text = (folder / "run" / "checkpoint.safetensors").read_bytes()
    metadata = json.loads(text[8:8 + int.from_bytes(text[:8], "little")])["__metadata__"]
    assert json.loads(metadata["sluice.classes.target_kind"]) == KINDS and json.loads(metadata["sluice.classes.target_coat"]) == COATS, metadata
    start = json.loads((folder / "log.jsonl").read_text().splitlines()[0])
    assert start["target_kind.classes"] == KINDS and start["target_coat.classes"] == COATS, start
    answers = json.loads((folder / "p.json").read_text())
    assert answers["classes"] == {"kind": KINDS, "coat": COATS}, answers["classes"]
    arrays, table = numpy.load(folder / "p.npz"), list(csv.DictReader(open(folder / "p.csv")))
    right = list(csv.DictReader(open(folder / "test.csv")))
    hits = 0
    for i, (row, line, wanted) in enumerate(zip(answers["predictions"], table, right)):
        for name, names in (("kind", KINDS), ("coat", COATS)):
            assert list(arrays[f"{name}_classes"]) == names
            answer = names[int(arrays[name][i].argmax())]
            assert row["answers"][name] == answer == line[f"{name}_answer"], (row, line)
            hits += answer == wanted[name]
    assert len(table) == len(right) == 24 and hits > 40, hits
    print("each output has its names")


if __name__ == "__main__":
    {"make": make, "check": check, "standardize": standardize, "measured": measured}[sys.argv[1]](pathlib.Path(sys.argv[2]))
