#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether training in bf16 ends where training in fp32 does: three data sets over several seeds, as a Markdown table.

    tools/bench/half_training.py FOLDER [--seeds 3] [--sluicec build/bin/sluicec] [--only digits,photos,text]

digits: scikit-learn's scans and the residual network with BatchNorm of tools/python/digits.py, 10 epochs; photos: crops of photographs as CIFAR's images (lossy_photos.py) and the network of
examples/cifar, 600 steps; text: examples/gpt, 800 steps. Accuracy in percent on images that were not trained on, perplexity of text that was not. With the same seed both precisions draw the same
weights and see the same samples. FOLDER keeps data and programs. Needs the environment of tools/setup.sh --references."""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys

from lossy_photos import write_crops

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRECISIONS = ["fp32", "bf16"]


def digits(folder):
    """(model, flags of sluicec, flags of the program)"""
    subprocess.run([sys.executable, ROOT / "tools/python/digits.py", folder], check=True)
    return folder / "digits.onnx", ["--batch=32", "--init=kaiming"], ["--data", folder / "train", "--evaluate", folder / "test", "--epochs", "10", "--lr", "0.05", "--momentum", "0.9",
                                                                       "--schedule", "cosine"]


def photos(folder):
    for name, count, seed in (("train", 16384, 1), ("test", 4096, 2)):
        write_crops(folder / name, count, seed)
    from lossy_photos import FIELDS, SIZE, plain_cnn
    import onnx
    onnx.save(plain_cnn((3, SIZE, SIZE), 2 * FIELDS**2), folder / "photos.onnx")
    return folder / "photos.onnx", ["--batch=64", "--init=kaiming"], ["--data", folder / "train", "--evaluate", folder / "test", "--steps", "600", "--lr", "0.02", "--momentum", "0.9",
                                                                       "--schedule", "cosine"]


def text(folder):
    subprocess.run([sys.executable, ROOT / "examples/gpt/data.py"], check=True, cwd=folder)
    tokens = [f"tokens:{folder / name}.txt,type=uint8" for name in ("train", "test")]
    return (ROOT / "examples/gpt/model.onnx", ["--batch=16", "--loss=token-cross-entropy", "--optimizer=adamw", "--clip-norm"],
            ["--data", tokens[0] + ",stride=1", "--evaluate", tokens[1], "--steps", "800", "--lr", "5e-3", "--schedule", "cosine", "--warmup", "5%", "--weight-decay", "0.1", "--group",
             ".*(norm|bias|positions).*:decay=0", "--clip-norm", "1"])


SETS = {"digits": digits, "photos": photos, "text": text}


def train(folder, program, flags, seed):
    """Loss and accuracy of the last evaluation."""
    log = folder / "log.jsonl"
    subprocess.run([program, *flags, "--shuffle", "--seed", str(seed), "--quiet", "--force", "--log", log], check=True, stdout=subprocess.DEVNULL)
    return [event for event in map(json.loads, log.read_text().splitlines()) if event["event"] == "evaluate"][-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--sluicec", default=str(ROOT / "build/bin/sluicec"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default=",".join(SETS))
    options = parser.parse_args()
    print("| data | precision | " + " | ".join(f"seed {seed + 1}" for seed in range(options.seeds)) + " | mean | standard deviation |")
    print("|---|---|" + "---|" * (options.seeds + 2))
    for name in options.only.split(","):
        folder = options.folder.resolve() / name
        folder.mkdir(parents=True, exist_ok=True)
        model, compiling, training = SETS[name](folder)
        for precision in PRECISIONS:
            program = folder / precision
            subprocess.run([options.sluicec, model, *compiling, f"--precision={precision}", "--force", "-o", program], check=True, stdout=subprocess.DEVNULL)
            events = [train(folder, program, training, seed + 1) for seed in range(options.seeds)]
            values = [math.exp(event["loss"]) if name == "text" else 100 * event["accuracy"] for event in events]
            digits_ = 4 if name == "text" else 2
            print(f"| {name}, {'perplexity' if name == 'text' else 'accuracy, %'} | {precision} | " + " | ".join(f"{value:.{digits_}f}" for value in [*values, statistics.mean(values)]) +
                  f" | {statistics.stdev(values):.{digits_}f} |", flush=True)


if __name__ == "__main__":
    main()
