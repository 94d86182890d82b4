#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Images a second of decoding and augmenting, Sluice's data set against torchvision's transforms in PyTorch's loader,
# with as many workers; runs alternate, so that both meet the same machine.
#   data_speed.py [BUILD]    in the environment of tools/setup.sh --references; BUILD/bin/data-bench must be built
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
from PIL import Image
from torchvision import datasets, transforms

BATCH, BATCHES, ROUNDS = 32, 6, 3


def write_images(folder):
    """Pictures like photographs: smooth shapes with some noise, 500 x 375, JPEG of quality 90."""
    rng = np.random.default_rng(1)
    y, x = np.mgrid[0:375, 0:500]
    for n in range(192):
        waves = [np.sin(x / rng.uniform(8, 90) + rng.uniform(0, 6)) * np.cos(y / rng.uniform(8, 90)) for _ in range(3)]
        picture = 128 + 100 * np.stack(waves, -1) + rng.normal(0, 8, (375, 500, 3))
        path = folder / str(n % 4) / f"{n}.jpg"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(np.clip(picture, 0, 255).astype(np.uint8)).save(path, quality=90)


def torchvision_speed(folder, workers):
    steps = transforms.Compose([
        transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
        transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])
    loader = torch.utils.data.DataLoader(datasets.ImageFolder(folder, steps), BATCH, shuffle=True, drop_last=True,
                                         num_workers=workers, persistent_workers=True)
    list(loader)  # the workers start
    seen, begin = 0, time.perf_counter()
    while seen < BATCH * BATCHES:
        for images, _ in loader:
            seen += len(images)
    return seen / (time.perf_counter() - begin)


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        write_images(pathlib.Path(name))
        for workers in (1, 2):
            ours, theirs = [], []
            for _ in range(ROUNDS):
                command = [build / "bin/data-bench", f"imagefolder:{name}", "random-resized-crop;flip", str(workers), str(BATCHES)]
                ours.append(float(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
                theirs.append(torchvision_speed(name, workers))
            print(f"workers {workers}: Sluice {statistics.median(ours):.0f} images/s ({min(ours):.0f} to {max(ours):.0f}), "
                  f"torchvision {statistics.median(theirs):.0f} ({min(theirs):.0f} to {max(theirs):.0f})")


main()
