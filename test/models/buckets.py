# SPDX-License-Identifier: Apache-2.0
"""A model of sequences of many lengths, its data and PyTorch's losses on batches that are not filled up, for test/execute/buckets.test.

    buckets.py make FOLDER [--steps N] [--samples N] [--width N]    model.onnx, data.jsonl, test.jsonl, expected.json
    buckets.py compare FOLDER                           logs NAME.jsonl of programs against what expected.json has under NAME

The model reads ids and a mask, attends from each token to all that the mask has, and scores the next one: neither the other sequences of a batch nor what
fills it up may change a loss.
"""
import argparse
import json
import pathlib

import numpy

VOCABULARY, LONGEST, BATCH, RATE, IGNORED = 23, 24, 4, 0.1, -100
BUCKETS = (8, 12, 24)


def network(width=16):
    import torch
    from torch import nn

    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(VOCABULARY, width), nn.Embedding(LONGEST, width)
            self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, VOCABULARY)

        def forward(self, ids, mask):
            x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
            scores = self.query(x) @ self.key(x).transpose(1, 2) / width ** 0.5
            scores = scores + (1 - mask.to(x.dtype))[:, None, :] * -1e9
            return self.head(self.norm(x + torch.softmax(scores, -1) @ self.value(x)))

    torch.manual_seed(5)
    return Reader()


def draw(samples, seed):
    """Lengths of which most buckets have some, and the largest is reached."""
    random, data = numpy.random.default_rng(seed), []
    for length in random.integers(2, LONGEST + 1, samples):
        ids = random.integers(0, VOCABULARY, length)
        target = numpy.where(random.random(length) < 0.2, IGNORED, (ids * 5 + 1) % VOCABULARY)
        data.append({"ids": ids.tolist(), "mask": [1] * int(length), "target": target.tolist()})
    return data


def bucket_of(sample):
    return next(i for i, extent in enumerate(BUCKETS) if len(sample["ids"]) <= extent)


def batches_of(data):
    """Those of an epoch without --shuffle: what does not fill a batch moves up, batches come in the order of their first samples."""
    waiting, batches = [[] for _ in BUCKETS], []
    for number, sample in enumerate(data):
        waiting[bucket_of(sample)].append(number)
    for bucket, own in enumerate(waiting):
        whole = len(own) // BATCH * BATCH
        batches += [own[first:first + BATCH] for first in range(0, whole, BATCH)]
        if bucket + 1 < len(BUCKETS):
            waiting[bucket + 1] += own[whole:]
    return sorted(batches, key=lambda batch: batch[0])


def sums(torch, model, samples):
    """Sum of the losses of all tokens that count, and their number: each sequence by itself, without any padding."""
    total, count = 0, 0
    for sample in samples:
        ids, mask, target = (torch.tensor([sample[name]]) for name in ("ids", "mask", "target"))
        total = total + torch.nn.functional.cross_entropy(model(ids, mask)[0], target[0], ignore_index=IGNORED, reduction="sum")
        count += int((target != IGNORED).sum())
    return total, count


def train(torch, model, data, steps, together):
    optimizer, batches, losses = torch.optim.SGD(model.parameters(), RATE), batches_of(data), []
    for step in range(steps):
        optimizer.zero_grad()
        numbers = [n for i in range(together) for n in batches[(step * together + i) % len(batches)]]
        total, count = sums(torch, model, [data[n] for n in numbers])
        (total / count).backward()
        optimizer.step()
        losses.append((total / count).item())
    return losses


def export(torch, model, path):
    sample = tuple(torch.ones(2, LONGEST, dtype=torch.int64) for _ in range(2))
    axes = {name: {0: "batch", 1: "tokens"} for name in ("ids", "mask", "scores")}
    torch.onnx.export(model, sample, str(path), dynamo=False, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, opset_version=17,
                      input_names=["ids", "mask"], output_names=["scores"], dynamic_axes=axes)


def make(folder, steps, samples, width):
    import torch
    model, data, test = network(width), draw(samples, 1), draw(23, 2)
    first = {name: value.clone() for name, value in model.state_dict().items()}
    for name, lines in (("data", data), ("test", test)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    export(torch, model, folder / "model.onnx")
    expected = {}
    for name, together in (("one", 1), ("three", 3)):
        model.load_state_dict(first)
        losses = train(torch, model.double(), data, steps // together, together)
        with torch.no_grad():
            total, count = sums(torch, model, test)
        expected[name] = {"losses": losses, "evaluation": (total / count).item()}
        model.float()
    (folder / "expected.json").write_text(json.dumps(expected))


def compare(folder):
    for name, wanted in json.loads((folder / "expected.json").read_text()).items():
        lines = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]
        found = [line["loss"] for line in lines if line["event"] == "step"]
        numpy.testing.assert_allclose(found, wanted["losses"], rtol=1e-5, err_msg=name)
        evaluation = [line["loss"] for line in lines if line["event"] == "evaluate"][-1]
        numpy.testing.assert_allclose(evaluation, wanted["evaluation"], rtol=1e-5, err_msg=name)
        print(f"{name}: {len(found)} steps as PyTorch without padding, evaluation {evaluation:.5f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("make", "compare"))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--samples", type=int, default=61)
    parser.add_argument("--width", type=int, default=16)
    words = parser.parse_args()
    make(words.folder, words.steps, words.samples, words.width) if words.what == "make" else compare(words.folder)
