#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A network of convolutions and ReLUs on crops of photographs, 32x32 as CIFAR's, with zfp at several rates and with an error budget's choice beside keep, over several seeds,
as a Markdown table: mean loss of the last steps, accuracy on other crops.

    tools/bench/lossy_photos.py FOLDER [--seeds 3] [--steps 600] [--rates 2,4,8,16] [--budget 60] [--sluicec build/bin/sluicec]

The photographs are the two that scikit-learn's package carries; a class is one of 16 fields of one of them (32 classes). A crop has its centre anywhere in its field, 48 to 112 pixels
across, is mirrored or not, and has its own brightness, contrast and noise; 16,384 to train on, 4,096 others to evaluate. FOLDER keeps the arrays and the model. Last come
the errors of the gradients under each codec, of all tensors together, as keep's program measures them after half of the steps; with them the error budget's choice is planned.
Needs the environment of tools/setup.sh --references."""
import argparse
import collections
import json
import pathlib
import subprocess
import sys

import numpy as np
import onnx
from PIL import Image
from sklearn.datasets import load_sample_images

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from digits import plain_cnn  # noqa: E402

SIZE, FIELDS, LAST = 32, 4, 100


def crop(photo, field, random):
    """A square around a point of the field, as SIZE x SIZE values around 0."""
    extent = np.array(photo.size[::-1])
    across = random.integers(48, 113)
    centre = (np.array(divmod(field, FIELDS)) + random.random(2)) * extent / FIELDS
    top, left = np.clip(centre - across / 2, 0, extent - across)
    square = photo.crop((left, top, left + across, top + across)).resize((SIZE, SIZE), Image.Resampling.BILINEAR)
    image = np.asarray(square, np.float32).transpose(2, 0, 1) / 128 - 1
    image = image[:, :, ::-1] if random.integers(2) else image
    return image * random.uniform(0.5, 1.5) + random.uniform(-0.4, 0.4) + random.normal(0, 0.1, image.shape)


def write_crops(folder, count, seed):
    random = np.random.default_rng(seed)
    photos = [Image.fromarray(image) for image in load_sample_images().images]
    classes = random.integers(0, len(photos) * FIELDS**2, count)
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "input.npy", np.stack([crop(photos[c // FIELDS**2], c % FIELDS**2, random) for c in classes]).astype(np.float32))
    np.save(folder / "target.npy", classes.astype(np.int64))


def run(options, program, seed, steps, *flags):
    subprocess.run([program, "--data", options.folder / "train", "--steps", str(steps), "--lr", "0.02", "--momentum", "0.9", "--schedule", "cosine", "--shuffle", "--seed", str(seed),
                    "--quiet", "--force", *flags], check=True, stdout=subprocess.DEVNULL)


def measured(options, program):
    """Square roots of the sums of squares of the tensors' errors by codec; leaves a profile that has nothing but errors."""
    profile = options.folder / "profile.json"
    run(options, program, 1, options.steps // 2, "--profile-out", profile, "--profile-errors", "2")
    errors = json.loads(profile.read_text())["errors"]
    profile.write_text(json.dumps({"version": 1, "errors": errors}))
    total = collections.defaultdict(float)
    for one in errors:
        total[one["codec"].replace("mask+", "")] += one["error"] ** 2
    return {codec: square**0.5 for codec, square in total.items()}


def train(options, program, seed):
    """(mean loss of the last steps, accuracy in percent on crops that were not trained on)"""
    log = options.folder / "log.jsonl"
    run(options, program, seed, options.steps, "--evaluate", options.folder / "test", "--log", log)
    events = [json.loads(line) for line in log.read_text().splitlines()]
    losses = [event["loss"] for event in events if event["event"] == "step"]
    return np.mean(losses[-LAST:]), 100 * [event for event in events if event["event"] == "evaluate"][-1]["accuracy"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--sluicec", default="build/bin/sluicec")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--rates", default="2,4,8,16")
    parser.add_argument("--budget", type=int, default=60, help="of the error budget's plan, in %% of the activations")
    options = parser.parse_args()
    for name, count, seed in (("train", 16384, 1), ("test", 4096, 2)):
        if not (options.folder / name / "target.npy").exists():
            write_crops(options.folder / name, count, seed)
    onnx.save(plain_cnn((3, SIZE, SIZE), 2 * FIELDS**2), options.folder / "photos.onnx")
    plans = [("fp32, keep", ["--strategy=keep"])]
    plans += [(f"zfp rate {rate} on every activation", [f"--strategy=freelunch,rate={rate}", "--allow-lossy=zfp"]) for rate in options.rates.split(",") if rate]
    within = ["--host-budget=unlimited", f"--memory-budget={options.budget}%act", "--error-budget=1e-2", f"--profile={options.folder / 'profile.json'}"]
    plans += [(f"`--error-budget=1e-2`, {options.budget} % of the activations{words}", [f"--strategy=mixed{knobs}", *within])
              for words, knobs in (("", ""), (", neither copies nor re-runs", ",offload=0,recompute=0"))]
    print("| plan | " + " | ".join(f"seed {seed + 1}" for seed in range(options.seeds)) + " | mean | accuracy, standard deviation |")
    print("|---|" + "---|" * (options.seeds + 2))
    errors = {}
    for name, flags in plans:
        program = options.folder / "program"
        subprocess.run([options.sluicec, options.folder / "photos.onnx", "--batch=64", "--init=kaiming", "--force", "-o", program, *flags], check=True, stdout=subprocess.DEVNULL)
        errors = errors or measured(options, program)
        rows = np.array([train(options, program, seed + 1) for seed in range(options.seeds)])
        print(f"| {name} | " + " | ".join(f"{loss:.4f} / {accuracy:.2f}" for loss, accuracy in [*rows, rows.mean(0)]) + f" | {rows[:, 1].std(ddof=1):.1f} |", flush=True)
    print("\n| codec | " + " | ".join(errors) + " |\n|---|" + "---|" * len(errors) + "\n| error of the gradients | " + " | ".join(f"{error:.1e}" for error in errors.values()) + " |")


if __name__ == "__main__":
    main()
