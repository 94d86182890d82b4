#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long steps wait for their data: ResNet-18 at 224 x 224 from a folder of JPEGs, random resized crops and flips, two workers. Prints the line of
docs/results/program.md: medians of the log after the first step, and the share of waiting in all of these steps. Exit status 1 above 5 %.

    tools/bench/data_wait.py [--sluicec build/bin/sluicec] [--batch 16] [--steps 6]      in the environment of tools/setup.sh --references"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch
import torchvision
from PIL import Image
from sklearn import datasets

root = pathlib.Path(__file__).resolve().parents[2]


def write_images(folder, count):
    """Parts of scikit-learn's two photographs, 500 x 375, quality 90."""
    photos, rng, sizes = datasets.load_sample_images().images, np.random.default_rng(1), []
    for n in range(count):
        photo = photos[n % 2]
        y, x = (int(rng.integers(0, extent - size + 1)) for extent, size in zip(photo.shape, (375, 500)))
        path = folder / str(n % 2) / f"{n:04}.jpg"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(photo[y:y + 375, x:x + 500]).save(path, quality=90)
        sizes.append(path.stat().st_size)
    return statistics.mean(sizes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluicec", default=str(root / "build/bin/sluicec"))
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=6)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "images").mkdir()
        size = write_images(folder / "images", 8 * options.batch)
        warnings.simplefilter("ignore")
        torch.onnx.export(torchvision.models.resnet18(num_classes=2).train(), torch.zeros(2, 3, 224, 224), folder / "resnet18.onnx", dynamo=False,
                          training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, input_names=["images"], dynamic_axes={"images": {0: "batch"}})
        subprocess.run([options.sluicec, folder / "resnet18.onnx", f"--batch={options.batch}", "-o", folder / "resnet18"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([folder / "resnet18", "--data", f"imagefolder:{folder / 'images'}", "--augment", "random-resized-crop;flip", "--mean", "0.485,0.456,0.406",
                        "--std", "0.229,0.224,0.225", "--shuffle", "--workers=2", "--steps", str(options.steps), "--lr=0.01", "--log", folder / "log.jsonl", "--quiet"],
                       check=True)
        steps = [line for line in map(json.loads, (folder / "log.jsonl").read_text().splitlines()) if line["event"] == "step"][1:]
    wait, whole = ([step[key] for step in steps] for key in ("data_wait_ms", "ms"))
    share = 100 * sum(wait) / sum(whole)
    print(f"| ResNet-18, batch {options.batch}, JPEGs of 500 x 375 ({size / 1024:.0f} KiB) | {len(steps)} | {statistics.median(whole):.0f} ms | {statistics.median(wait):.2f} ms | "
          f"{share:.2f} % |")
    return 0 if share <= 5 else 1


if __name__ == "__main__":
    sys.exit(main())
