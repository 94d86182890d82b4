#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the small models of the core test suite with their PyTorch references: test/models/tiny/NAME, and the deeper ones without:
test/models/deep/NAME. Needs the environment of
`tools/setup.sh --references`; its results are committed, so the tests do not.

    test/models/make_tiny.py [NAME ...]        model, data and reference.safetensors
    test/models/make_tiny.py --into DIR [NAME ...]    the same in another folder, by PyTorch's newer exporter (torch.export)
    test/models/make_tiny.py --variants        references of other ways to train the models that are there: tiny/NAME/VARIANT.safetensors
    test/models/make_tiny.py --autocast        how far bf16 moves PyTorch's own gradients of the models that are there: tiny/NAME/autocast.json"""
import json
import pathlib
import sys

import numpy as np
import torch

from layouts import LAYERS, SHARED, WIDTH, BatchFirst, OneSample, TimeFirst
from networks import DEEP, NETWORKS
from noise import Draws, Quantized, Vae
from reference import DRAWS, HYPERPARAMETERS, export, gradients_of, load_initializers, make_data, names_in_file, record, split, with_noise

STEPS = 5
NETWORKS = {**NETWORKS, "quantized": (Quantized, (16,), 5, 8)}
# model, variant: optimizer, its hyperparameters, whether BatchNorm keeps its running statistics
VARIANTS = {
    ("mlp", "sgd"): (torch.optim.SGD, {"lr": 0.1, "momentum": 0.5, "weight_decay": 0.2}, False),
    ("mlp", "plain"): (torch.optim.SGD, {"lr": 0.1}, False),
    ("mlp", "adam"): (torch.optim.Adam, {"lr": 0.01, "betas": (0.8, 0.95), "eps": 1e-4, "weight_decay": 0.2}, False),
    ("mlp", "adamw"): (torch.optim.AdamW, {"lr": 0.01, "betas": (0.8, 0.95), "eps": 1e-4, "weight_decay": 0.2}, False),
    ("vgg", "adam"): (torch.optim.Adam, {"lr": 0.001}, False),
    ("resnet", "frozen"): (torch.optim.SGD, HYPERPARAMETERS, True),
}


def variants(root):
    for (name, variant), (rule, hyperparameters, frozen) in VARIANTS.items():
        module, _, _, batch = NETWORKS[name]
        data = root / name / "data"
        x, target = (torch.from_numpy(np.load(data / f"{part}.npy")) for part in ("input", "target"))
        losses = record(module(), x, target, batch, root / name, hyperparameters, rule=rule, frozen=frozen, file=variant)
        print(f"{name} {variant}: losses {' '.join(f'{v:.6f}' for v in losses)}")


# Those that test/execute/bf16.test trains.
HALVES = ("mlp", "resnet", "vgg", "bottleneck", "densenet", "unet", "mobile", "vit", "gpt", "bert", "convnext")


def autocast(root):
    """Norm of the difference over norm of each gradient of the first batch, of autocast to bf16 against fp32: the largest of DRAWS draws
    of a noise in the weights of less than bf16 rounds, for one draw may round by luck."""
    for name in HALVES:
        module, shape, _, batch = NETWORKS[name]
        folder, model = root / name, module()
        load_initializers(model, folder / "model.onnx")
        model.train()
        for part in model.modules():
            if isinstance(part, torch.nn.Dropout):
                part.p = 0.0
        inputs = shape if isinstance(shape, dict) else {"input": None}
        x = {part: torch.from_numpy(np.load(folder / "data" / f"{part}.npy"))[:batch] for part in inputs}
        target = torch.from_numpy(np.load(folder / "data/target.npy"))[:batch]
        x = x if isinstance(shape, dict) else x["input"]
        moved, files = {}, names_in_file(model, folder / "model.onnx")
        for seed in range(DRAWS):
            drawn = with_noise(model, 1e-3, seed)
            _, exact = gradients_of(drawn, x, target)
            with torch.autocast("cpu", torch.bfloat16):
                _, rounded = gradients_of(drawn, x, target)
            for key, g in exact.items():
                error = float((rounded[key] - g).norm() / g.norm().clamp_min(1e-30))
                moved[files[key]] = max(moved.get(files[key], 0.0), error)
        with open(folder / "autocast.json", "w") as file:
            json.dump({key: float(f"{value:.3g}") for key, value in sorted(moved.items())}, file, indent=1)
            file.write("\n")
        print(f"{name}: gradients move by {min(moved.values()):.2e} to {max(moved.values()):.2e}")


def main():
    torch.set_num_threads(1)
    root, names, newer = pathlib.Path(__file__).parent / "tiny", sys.argv[1:], sys.argv[1:2] == ["--into"]
    if newer:
        root, names = pathlib.Path(sys.argv[2]), sys.argv[3:]
    if sys.argv[1:] == ["--variants"]:
        return variants(root)
    if sys.argv[1:] == ["--autocast"]:
        return autocast(root)
    for name in names or NETWORKS:
        module, shape, targets, batch = NETWORKS[name]
        torch.manual_seed(1)
        model = module()
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        size = shape[1:] if name in ("unet", "volume") else (shape["input"].length,) if name == "gpt" else None
        x, target = make_data(shape, targets, batch, STEPS, size)
        export(model, split(x, batch)[0], folder / "model.onnx", dynamo=newer)
        hyperparameters = dict(HYPERPARAMETERS, lr=0.1 if name == "mlp" else 0.01)
        losses = record(model, x, target, batch, folder, hyperparameters)
        total = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
        print(f"{name}: losses {' '.join(f'{v:.6f}' for v in losses)}; {total // 1024} KiB")
    if not sys.argv[1:]:
        make_deep()
        make_layouts()
        make_noise()


def make_noise():
    """Models that draw: nobody else draws the same numbers, so that they have no references."""
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(3)
    for name, module, width, target in (("vae", Vae, 16, 16), ("draws", Draws, 256, 1024)):
        folder = pathlib.Path(__file__).parent / "tiny" / name
        (folder / "data").mkdir(parents=True, exist_ok=True)
        export(module(), torch.randn(4, width), folder / "model.onnx")
        x = torch.randn((16, width), generator=generator)
        np.save(folder / "data/input.npy", x.numpy())
        np.save(folder / "data/target.npy", x.numpy() if name == "vae" else np.zeros((16, target), np.float32))


def make_layouts():
    """Models whose inputs do not begin with the batch."""
    root, batch, generator = pathlib.Path(__file__).parent / "tiny", 8, torch.Generator().manual_seed(3)
    torch.manual_seed(1)
    shapes = {"x": (7, 3), "h0": (LAYERS, WIDTH), "c0": (LAYERS, WIDTH)}
    x = {name: torch.randn((batch * STEPS, *shape), generator=generator) for name, shape in shapes.items()}
    target = torch.randint(0, 4, (batch * STEPS, 7), generator=generator)
    model, folder = TimeFirst(), root / "timefirst"
    folder.mkdir(parents=True, exist_ok=True)
    sample = tuple(part[:batch].transpose(0, 1).contiguous() for part in x.values()) + tuple(SHARED.values())
    axes = {name: {1: "batch"} for name in [*x, "output"]}
    torch.onnx.export(model, sample, str(folder / "model.onnx"), dynamo=False, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                      opset_version=17, input_names=[*x, *SHARED], output_names=["output"], dynamic_axes=axes)
    losses = record(BatchFirst(), x, target, batch, folder, HYPERPARAMETERS)
    for name, value in SHARED.items():
        np.save(folder / "data" / f"{name}.npy", value.numpy())
    print(f"timefirst: losses {' '.join(f'{v:.6f}' for v in losses)}")
    model, folder = OneSample(), root / "onesample"
    folder.mkdir(parents=True, exist_ok=True)
    torch.onnx.export(model, (torch.randn(16),), str(folder / "model.onnx"), dynamo=False, training=torch.onnx.TrainingMode.TRAINING,
                      do_constant_folding=False, opset_version=17, input_names=["input"], output_names=["output"])
    x, target = torch.randn((STEPS, 16), generator=generator), torch.randint(0, 5, (STEPS,), generator=generator)
    losses = record(OneSample(), x, target, 1, folder, HYPERPARAMETERS)
    print(f"onesample: losses {' '.join(f'{v:.6f}' for v in losses)}")


def make_deep():
    for name, (module, shape) in DEEP.items():
        torch.manual_seed(1)
        folder = pathlib.Path(__file__).parent / "deep" / name
        folder.mkdir(parents=True, exist_ok=True)
        export(module(), torch.randn(4, *shape), folder / "model.onnx")


main()
