#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Accuracy of programs beside PyTorch, for each kind of data: the same first weights, the same recipe, the same batches in the same order (PyTorch's side
reads the files with numpy and Pillow and draws the order a second time, test/models/draws.py). Prints the table of docs/results/program.md.

    tools/bench/accuracy.py [--sluicec build/bin/sluicec] [--seeds 3] [--only NAME]      in the environment of tools/setup.sh --references

Data come with packages: scikit-learn's digits, wine, breast cancer and two photographs, Python's help texts. Exit status 1 where means differ by more than
half a point."""
import argparse
import gzip
import json
import math
import pathlib
import pydoc_data.topics
import struct
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from safetensors.torch import save_file
from sklearn import datasets
from torch import nn

root = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(root / "test/models"))
import draws  # noqa: E402, beside the models
from modern import Gpt  # noqa: E402

MOMENTUM, DECAY = 0.9, 5e-4


def cnn(channels, side, classes=10):
    return nn.Sequential(nn.Conv2d(channels, 12, 3, 1, 1, bias=False), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(12, 24, 3, 1, 1, bias=False), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(24 * (side // 4)**2, classes))


def mlp(features, classes):
    return nn.Sequential(nn.Linear(features, 32), nn.ReLU(), nn.Linear(32, classes))


class Parts:
    """What a kind of data gives: `flag(part)` for the program, `read(part)` for PyTorch (inputs, targets) from the same files."""
    loss, batch, epochs, rate, optimizer = "softmax-cross-entropy", 32, 6, 0.01, "sgd"

    def __init__(self, folder):
        self.folder, self.rng = folder, np.random.default_rng(7)
        self.digits = datasets.load_digits()
        for part, count in self.counts.items():
            (folder / part).mkdir()
            self.write(part, count)

    def digit(self, part):
        """One of the digits, each of which is in one part only."""
        n = int(self.rng.integers(0, 1200) if part == "train" else self.rng.integers(1200, 1797))
        return self.digits.images[n] / 16, int(self.digits.target[n])

    def scenes(self, part, count, width, height):
        """Coloured digits on parts of photographs: bytes [count, height, width, 3] and classes."""
        photos, images, labels = datasets.load_sample_images().images, [], []
        for _ in range(count):
            shape, label = self.digit(part)
            photo = photos[self.rng.integers(2)]
            y, x = (int(self.rng.integers(0, photo.shape[i] - (height, width)[i])) for i in (0, 1))
            scene = photo[y:y + height, x:x + width] * 0.5
            size = int(self.rng.integers(20, 25))
            mask = np.asarray(Image.fromarray((shape * 255).astype(np.uint8)).resize((size, size), Image.BILINEAR))[..., None] / 255
            y, x = ((extent - size) // 2 + int(self.rng.integers(-2, 3)) for extent in (height, width))
            part_of = scene[y:y + size, x:x + size]
            scene[y:y + size, x:x + size] = part_of * (1 - mask) + self.rng.integers(160, 256, 3) * mask
            images.append(scene.round().astype(np.uint8))
            labels.append(label)
        return np.stack(images), np.array(labels)


class Digits(Parts):
    name, source, counts = "npy", "digits, 8 x 8", {"train": 1197, "test": 600}

    def write(self, part, count):
        images, labels = self.digits.images.astype(np.float32)[:, None] / 16, self.digits.target.astype(np.int64)
        chosen = slice(0, count) if part == "train" else slice(len(images) - count, None)
        np.save(self.folder / part / "input.npy", images[chosen])
        np.save(self.folder / part / "target.npy", labels[chosen])

    def flag(self, part):
        return str(self.folder / part)

    def read(self, part):
        return [torch.from_numpy(np.load(self.folder / part / f"{name}.npy")) for name in ("input", "target")]

    def net(self):
        return cnn(1, 8)


class Cifar(Parts):
    name, source, counts = "cifar10", "digits on photographs, 32 x 32", {"train": 1600, "test": 800}

    def write(self, part, count):
        images, labels = self.scenes(part, count, 32, 32)
        records = np.concatenate([labels[:, None].astype(np.uint8), images.transpose(0, 3, 1, 2).reshape(count, -1)], 1)
        (self.folder / part / "data_batch_1.bin").write_bytes(records.tobytes())

    def flag(self, part):
        return f"cifar10:{self.folder / part / 'data_batch_1.bin'}"

    def read(self, part):
        records = np.fromfile(self.folder / part / "data_batch_1.bin", np.uint8).reshape(-1, 3073)
        return torch.from_numpy(records[:, 1:].reshape(-1, 3, 32, 32).astype(np.float32) / 255), torch.from_numpy(records[:, 0].astype(np.int64))

    def net(self):
        return cnn(3, 32)


class Idx(Parts):
    name, source, counts = "idx", "digits on photographs, grey, 28 x 28, .gz", {"train": 1600, "test": 800}

    def write(self, part, count):
        images, labels = self.scenes(part, count, 28, 28)
        images = images.mean(-1).round().astype(np.uint8)
        for word, magic, array in (("images-idx3", 0x803, images), ("labels-idx1", 0x801, labels.astype(np.uint8))):
            with gzip.open(self.folder / part / f"x-{word}-ubyte.gz", "wb") as out:
                out.write(struct.pack(f">{1 + array.ndim}I", magic, *array.shape) + array.tobytes())

    def flag(self, part):
        return f"idx:{self.folder / part / 'x'}"

    def read(self, part):
        with gzip.open(self.folder / part / "x-images-idx3-ubyte.gz") as images, gzip.open(self.folder / part / "x-labels-idx1-ubyte.gz") as labels:
            x = np.frombuffer(images.read()[16:], np.uint8).reshape(-1, 1, 28, 28).astype(np.float32) / 255
            return torch.from_numpy(x), torch.from_numpy(np.frombuffer(labels.read()[8:], np.uint8).astype(np.int64))

    def net(self):
        return cnn(1, 28)


class Folders(Parts):
    name, source, counts = "imagefolder", "digits on photographs, JPEG and PNG of 48 x 40, resized to 32 x 32", {"train": 1600, "test": 800}

    def write(self, part, count):
        for n, (image, label) in enumerate(zip(*self.scenes(part, count, 48, 40))):
            path = self.folder / part / f"digit-{label}" / f"{n:05}.{('jpg', 'png')[n % 2]}"
            path.parent.mkdir(exist_ok=True)
            Image.fromarray(image).save(path, quality=92)

    def flag(self, part):
        return f"imagefolder:{self.folder / part}"

    def read(self, part):
        paths = sorted((self.folder / part).glob("*/*"))
        images = [np.asarray(Image.open(path).resize((32, 32), Image.BILINEAR)) for path in paths]
        x = np.stack(images).transpose(0, 3, 1, 2).astype(np.float32) / 255
        return torch.from_numpy(x), torch.tensor([int(path.parent.name[-1]) for path in paths])

    def net(self):
        return cnn(3, 32)


class Table(Parts):
    name, source, counts, loader, epochs = "csv", "breast cancer, 30 columns", {"train": 369, "test": 200}, datasets.load_breast_cancer, 15

    def write(self, part, count):
        x, y = type(self).loader(return_X_y=True)
        chosen = np.random.default_rng(3).permutation(len(x))
        chosen = chosen[:count] if part == "train" else chosen[len(x) - count:]
        x = (x - x.mean(0)) / x.std(0)
        lines = [",".join([f"c{i}" for i in range(x.shape[1])] + ["target"])] + [",".join([f"{v:.6g}" for v in x[n]] + [str(y[n])]) for n in chosen]
        (self.folder / part / "table.csv").write_text("\n".join(lines) + "\n")

    def flag(self, part):
        return f"csv:{self.folder / part / 'table.csv'}"

    def read(self, part):
        values = np.loadtxt(self.folder / part / "table.csv", delimiter=",", skiprows=1, dtype=np.float32)
        return torch.from_numpy(values[:, :-1].copy()), torch.from_numpy(values[:, -1].astype(np.int64))

    def net(self):
        return mlp(*{"breast cancer, 30 columns": (30, 2), "wine, 13 columns": (13, 3)}[self.source])


class Wine(Table):
    name, source, counts, loader = "csv, wine", "wine, 13 columns", {"train": 98, "test": 80}, datasets.load_wine


class Tokens(Parts):
    name, source, loss, epochs, length = "tokens", "Python's help texts, bytes, windows of 32", "token-cross-entropy", 2, 32
    rate, optimizer = 0.003, "adam"
    counts = {"train": 120000, "test": 60000}

    def write(self, part, count):
        words = "".join(pydoc_data.topics.topics[key] for key in sorted(pydoc_data.topics.topics)).encode()
        words = words[:count] if part == "train" else words[-count:]
        (self.folder / part / "text.u16.bin").write_bytes(np.frombuffer(words, np.uint8).astype("<u2").tobytes())

    def flag(self, part):
        return f"tokens:{self.folder / part / 'text.u16.bin'}"

    def read(self, part):
        ids = torch.from_numpy(np.fromfile(self.folder / part / "text.u16.bin", "<u2").astype(np.int64))
        windows = (len(ids) - 1) // self.length
        return [ids[shift:shift + windows * self.length].view(windows, self.length) for shift in (0, 1)]

    def net(self):
        return Gpt(vocabulary=256, context=self.length, width=32)


def torch_accuracy(data, net, seed):
    """Of PyTorch, with the recipe that the program gets, in percent."""
    (x, y), (test_x, test_y) = data.read("train"), data.read("test")
    rule, hyperparameters = (torch.optim.SGD, {"momentum": MOMENTUM}) if data.optimizer == "sgd" else (torch.optim.Adam, {})
    optimizer = rule(net.parameters(), data.rate, weight_decay=DECAY, **hyperparameters)
    per_epoch = len(x) // data.batch
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: 0.5 * (1 + math.cos(math.pi * s / (data.epochs * per_epoch))))
    flat = (lambda scores: scores.flatten(0, 1)) if data.loss == "token-cross-entropy" else (lambda scores: scores)
    net.train()
    for epoch in range(data.epochs):
        order = torch.tensor(draws.order(len(x), seed, epoch))
        for batch in order[:per_epoch * data.batch].split(data.batch):
            optimizer.zero_grad()
            F.cross_entropy(flat(net(x[batch])), y[batch].flatten()).backward()
            optimizer.step()
            schedule.step()
    net.eval()
    with torch.no_grad():
        right = sum((net(a).argmax(-1) == b).sum().item() for a, b in zip(test_x.split(500), test_y.split(500)))
    return 100 * right / test_y.numel()


def program_accuracy(data, program, weights, seed):
    log = data.folder / "log.jsonl"
    subprocess.run([program, "--data", data.flag("train"), "--evaluate", data.flag("test"), "--epochs", str(data.epochs), "--lr", str(data.rate),
                    *(["--momentum", str(MOMENTUM)] if data.optimizer == "sgd" else []), "--weight-decay", str(DECAY), "--schedule=cosine", "--shuffle", "--seed", str(seed), "--init", weights, "--workers=2", "--quiet",
                    "--log", log, "--force"], check=True)
    return 100 * [json.loads(line) for line in log.read_text().splitlines() if '"event":"evaluate"' in line][-1]["accuracy"]


def measure(kind, options, folder):
    data = kind(folder)
    net, x = data.net(), data.read("train")[0][:2]
    warnings.simplefilter("ignore")
    torch.onnx.export(net.train(), x, folder / "model.onnx", dynamo=False, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                      input_names=["input"], dynamic_axes={"input": {0: "batch"}})
    program = folder / "program"
    subprocess.run([options.sluicec, folder / "model.onnx", f"--batch={data.batch}", f"--loss={data.loss}", f"--optimizer={data.optimizer}", "-o", program], check=True, stdout=subprocess.DEVNULL)
    ours, theirs = [], []
    for seed in range(1, options.seeds + 1):
        torch.manual_seed(seed)
        net = data.net()
        weights = folder / f"{seed}.safetensors"
        save_file({name: value.clone() for name, value in net.state_dict().items() if value.is_floating_point() and not name.endswith("mask")}, weights)
        ours.append(program_accuracy(data, program, weights, seed))
        theirs.append(torch_accuracy(data, net, seed))
    words = [" ".join(f"{value:.2f}" for value in values) + f" | {np.mean(values):.2f}" for values in (ours, theirs)]
    print(f"| `{data.name}` | {data.source} | {data.counts['train']}, {data.counts['test']} | {words[0]} | {words[1]} | {np.mean(ours) - np.mean(theirs):+.2f} |", flush=True)
    return abs(np.mean(ours) - np.mean(theirs)) <= 0.5


def main():
    kinds = [Digits, Cifar, Idx, Folders, Table, Wine, Tokens]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluicec", default=str(root / "build/bin/sluicec"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", choices=[kind.name for kind in kinds])
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("| kind | what | samples: training, test | Sluice, seeds | mean | PyTorch, seeds | mean | difference |\n|---|---|---|---|---|---|---|---|", flush=True)
    near = True
    for kind in kinds:
        if options.only in (None, kind.name):
            with tempfile.TemporaryDirectory() as folder:
                near &= measure(kind, options, pathlib.Path(folder))
    return 0 if near else 1


if __name__ == "__main__":
    sys.exit(main())
