#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes torchvision's ResNet-18 in Sluice on real images, takes the weights back to PyTorch and ONNX Runtime, and writes what came out.

    DNNL_MAX_CPU_ISA=AVX2 ~/.cache/sluice/venv/bin/python tools/bench/fine_tuning.py build/fine-tuning --page docs/results/fine-tuning.md

The images are scikit-learn's digits (carried by its package), as PNG files of 32 x 32. PyTorch trains on the digits 0 to 4 with a head of 1000 classes;
Sluice begins with these weights, has a new head of 5 classes and sees the digits 5 to 9. Every fifth image of these is held out. Exit status 1 when
accuracy is not above 90 %, or the three runtimes do not agree.
"""
import argparse
import json
import pathlib
import platform
import shutil
import subprocess
import sys

import numpy as np
import onnxruntime
import torch
import torchvision
from PIL import Image
from safetensors.torch import load_file, save_file
from sklearn.datasets import load_digits

FROZEN = "(conv1|bn1|layer[123]).*"
SIZE, MEAN, STD, BATCH = 32, 0.3, 0.4, 32
PRETRAINING, EPOCHS, RATE = 3, 4, 0.01


def write_images(folder, chosen):
    """PNG files, a folder for each class; every fifth of a class is held out where `chosen` are the classes to fine-tune on."""
    digits = load_digits()
    for i, (image, label) in enumerate(zip(digits.images, digits.target)):
        if label in chosen:
            place = folder / ("test" if i % 5 == 0 else "train") / str(label)
            place.mkdir(parents=True, exist_ok=True)
            Image.fromarray((image * 15.9).astype(np.uint8)).resize((SIZE, SIZE), Image.BILINEAR).save(place / f"{i:04}.png")


def tensors(folder):
    """What a program makes of such a folder: normalized images of three channels, classes by the order of names; in its order."""
    images, labels = [], []
    for label, place in enumerate(sorted(folder.iterdir())):
        for file in sorted(place.iterdir()):
            images.append(np.asarray(Image.open(file), np.float32) / 255)
            labels.append(label)
    images = (np.stack(images) - MEAN) / STD
    return torch.from_numpy(images)[:, None].repeat(1, 3, 1, 1).contiguous(), torch.tensor(labels)


def train(net, images, labels, epochs, rate, seed):
    """SGD with momentum 0.9 on whole batches, as the program has it."""
    optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=rate, momentum=0.9)
    generator = torch.Generator().manual_seed(seed)
    net.train()
    for _ in range(epochs):
        order = torch.randperm(len(images), generator=generator)
        for batch in order[:len(order) // BATCH * BATCH].split(BATCH):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(images[batch]), labels[batch]).backward()
            optimizer.step()


def scores_of(net, images):
    net.eval()
    with torch.no_grad():
        return net(images).numpy()


def accuracy(scores, labels):
    return 100 * float((scores.argmax(1) == labels.numpy()).mean())


def pretrain(work):
    write_images(work / "0-4", range(5))
    torch.manual_seed(1)
    net = torchvision.models.resnet18(num_classes=1000)
    images, labels = tensors(work / "0-4/train")
    train(net, images, labels, PRETRAINING, RATE, 1)
    save_file(net.state_dict(), work / "pretrained.safetensors")
    return accuracy(scores_of(net, tensors(work / "0-4/test")[0]), tensors(work / "0-4/test")[1])


def export(work):
    net = torchvision.models.resnet18(num_classes=5).train()
    torch.onnx.export(net, torch.zeros(2, 3, SIZE, SIZE), work / "resnet18.onnx", dynamo=False, training=torch.onnx.TrainingMode.TRAINING,
                      do_constant_folding=False, input_names=["images"], dynamic_axes={"images": {0: "batch"}})


def in_sluice(work, sluicec, seed):
    """Compiles, fine-tunes and exports; the accuracy that the program says and the scores that it predicts."""
    program, log = work / "resnet18", work / f"log-{seed}.jsonl"
    subprocess.run([sluicec, work / "resnet18.onnx", f"--batch={BATCH}", f"--freeze={FROZEN}", "--cpu=x86-64-v3", "--init=kaiming", "--threads=1", "--force",
                    "-o", program], check=True)
    subprocess.run([program, f"--data=imagefolder:{work}/5-9/train", f"--evaluate=imagefolder:{work}/5-9/test", f"--predict=imagefolder:{work}/5-9/test",
                    f"--output={work}/scores.npy", f"--init={work}/pretrained.safetensors,skip-mismatched", f"--epochs={EPOCHS}", f"--lr={RATE}",
                    f"--mean={MEAN}", f"--std={STD}", "--shuffle", f"--seed={seed}", f"--log={log}", f"--export={work}/tuned.safetensors",
                    f"--checkpoint={work}/run-{seed}", "--force"], check=True)
    subprocess.run([program, f"--resume={work}/run-{seed}", f"--evaluate=imagefolder:{work}/5-9/test", f"--mean={MEAN}", f"--std={STD}",
                    f"--export={work}/tuned.onnx", "--force"], check=True)
    events = [json.loads(line) for line in log.read_text().splitlines()]
    return 100 * [e for e in events if e["event"] == "evaluate"][-1]["accuracy"], np.load(work / "scores.npy"), events[0]["device_bytes"]


def in_pytorch(work, seed):
    """The same recipe: frozen parameters, moving statistics, a new head."""
    torch.manual_seed(seed)
    net = torchvision.models.resnet18(num_classes=5)
    weights = load_file(work / "pretrained.safetensors")
    net.load_state_dict({name: value for name, value in weights.items() if not name.startswith("fc.")}, strict=False)
    for name, parameter in net.named_parameters():
        parameter.requires_grad = name.startswith(("layer4", "fc"))
    train(net, *tensors(work / "5-9/train"), EPOCHS, RATE, seed)
    images, labels = tensors(work / "5-9/test")
    return accuracy(scores_of(net, images), labels)


def judge(work, sluicec, seed):
    """A row of the table, and whether all of it is as promised."""
    images, labels = tensors(work / "5-9/test")
    said, predicted, device = in_sluice(work, sluicec, seed)
    net = torchvision.models.resnet18(num_classes=5)
    net.load_state_dict(load_file(work / "tuned.safetensors"))
    taken_back = scores_of(net, images)
    onnx = onnxruntime.InferenceSession(work / "tuned.onnx").run(None, {"images": images.numpy()})[0]
    apart = [float(np.abs(scores - predicted).max()) for scores in (taken_back, onnx)]
    accuracies = [said, accuracy(predicted, labels), accuracy(taken_back, labels), accuracy(onnx, labels)]
    good = said > 90 and max(accuracies) - min(accuracies) < 0.01 and max(apart) < 1e-3
    print(f"seed {seed}: {accuracies}, scores apart {apart}", file=sys.stderr, flush=True)
    row = [seed] + [f"{a:.2f}" for a in (said, accuracies[2], accuracies[3])] + [f"{a:.1e}" for a in apart] + [f"{in_pytorch(work, seed):.2f}"]
    return "| " + " | ".join(map(str, row)) + " |", good, device


def page(rows, before, counts, device):
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    processor = next(line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
    return f"""# Fine-tuning

torchvision's ResNet-18 on scikit-learn's digits (real scans, as PNG of {SIZE} x {SIZE}). PyTorch trains it on the digits 0 to 4 with a head of 1000 classes
({PRETRAINING} epochs; {before:.2f} % of held-out ones are right). Sluice takes these weights with `--init=...,skip-mismatched`, freezes `{FROZEN}`, draws a new
head of 5 classes, and trains on {counts[0]} images of the digits 5 to 9 for {EPOCHS} epochs: SGD, rate {RATE}, momentum 0.9, batch {BATCH}, {device:,} bytes of device
memory. Accuracy in percent on {counts[1]} images held out.

| seed | the program | its weights in PyTorch | its ONNX in ONNX Runtime | scores apart, PyTorch | scores apart, ONNX Runtime | fine-tuned by PyTorch |
|---|---|---|---|---|---|---|
""" + "\n".join(rows) + f"""

The exported weights are loaded by `load_state_dict` with nothing missing and nothing left over; "apart" is the largest difference of a score to what `--predict`
wrote. The last column is the same recipe in PyTorch, with its own order of samples and head.

    DNNL_MAX_CPU_ISA=AVX2 ~/.cache/sluice/venv/bin/python tools/bench/fine_tuning.py build/fine-tuning --seeds={len(rows)} --page docs/results/fine-tuning.md

{processor}, one thread, cores shared with other work, AVX2 (`--cpu=x86-64-v3`); commit {commit}, PyTorch {torch.__version__}, torchvision
{torchvision.__version__}, ONNX Runtime {onnxruntime.__version__}, Python {platform.python_version()}.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--sluicec", default="build/bin/sluicec")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--page", type=pathlib.Path)
    options = parser.parse_args()
    work = options.folder.resolve()
    torch.set_num_threads(1)  # it shares the cores with others
    shutil.rmtree(work, ignore_errors=True)
    write_images(work / "5-9", range(5, 10))
    before = pretrain(work)
    export(work)
    counts = [len(tensors(work / f"5-9/{part}")[1]) for part in ("train", "test")]
    judged = [judge(work, options.sluicec, seed) for seed in range(1, options.seeds + 1)]
    text = page([row for row, _, _ in judged], before, counts, judged[0][2])
    print(text)
    if options.page:
        options.page.write_text(text)
    sys.exit(0 if all(good for _, good, _ in judged) else 1)


if __name__ == "__main__":
    main()
