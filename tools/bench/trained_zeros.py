#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What zvc leaves out of activations that vdnn-all offloads, before and after training, and what that costs the processor, as Markdown on stdout:
Section V-C of vDNN++ on the host. Needs numpy, onnx and scikit-learn's digits.

    tools/bench/trained_zeros.py [--sluicec build/bin/sluicec] [--out build/trained-zeros] [--steps 300] [--rounds 5] [vgg16] [alexnet]

Digits, enlarged without filtering to three equal channels, are the data: 32x32 for VGG-16, whose first fully connected layer is as much smaller,
227x227 for AlexNet. A program with a slot for every tensor trains; two of its runs, of one step from the drawn weights and of ten from the trained
ones, write profiles with the share of zeros of every tensor. Then ten more steps each of three programs, in turn, rounds times: raw bytes, zvc in
slots, zvc in a pool 2 % larger than what was packed. All figures are medians over the rounds: of a run's fastest step, of its median copies, and of
the processor time of the whole run less that of one of a single step."""
import argparse
import json
import pathlib
import re
import resource
import statistics
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test/models"), str(ROOT / "tools/python")]
import digits  # noqa: E402
import make_papers  # noqa: E402

MORE = 10  # steps of a measured run
MEBIBYTE = 2**20
# model, edge of the images, how many of them, batch
NETWORKS = {"vgg16": (lambda: make_papers.vgg(0, 32), 32, 1437, 32), "alexnet": (make_papers.alexnet, 227, 320, 16)}


class Network:
    def __init__(self, name, options):
        model, size, count, self.batch = NETWORKS[name]
        self.name, self.size, self.options, self.folder = name, size, options, options.out / name
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "model.onnx").write_bytes(model().SerializeToString(deterministic=True))
        images, labels = digits.load_digits()
        at = np.arange(size) * 8 // size
        np.save(self.folder / "input.npy", np.repeat((images[:count, at][:, :, at] / 16).astype(np.float32)[:, None], 3, 1))
        np.save(self.folder / "target.npy", labels[:count].astype(np.int64))

    def program(self, codec):
        path = self.folder / (re.sub(r"\W", "-", codec) or "raw")
        subprocess.run([self.options.sluicec, self.folder / "model.onnx", f"--batch={self.batch}", "--init=kaiming", "--device=host", "--force", "-o", path,
                        "--strategy=vdnn-all" + (f",codec={codec}" if codec else "")], check=True)
        return path

    def run(self, program, steps, *flags):
        """Facts of the run's last event, milliseconds of its fastest step after the first, of its copies, and of the processor, and the losses."""
        log, before = self.folder / "log.jsonl", resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([program, "--data", self.folder, "--steps", str(steps), "--shuffle", "--seed", "7", "--lr", "0.005", "--momentum", "0.9",
                               "--clip-value", "1", "--log", log, "--force", *flags], check=True, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        events = [json.loads(line) for line in log.read_text().splitlines()]
        each = [event for event in events if event["event"] == "step"]
        copies = re.search(r"^offload.* ([\d.]+)$", done.stdout, re.M)
        return next(event for event in events if event["event"] == "end") | {
            "ms": min(event["ms"] for event in each[1:] or each), "losses": [event["loss"] for event in each], "copies": float(copies[1]),
            "processor": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}

    def shares(self, path):
        """Shares of zeros in what ReLUs and pools wrote, by op."""
        ops = json.loads(path.read_text())["ops"]
        return {op["node"]: op["zeros"][0] for op in ops if op.get("zeros") and re.match(r"(relu|maxpool)\d+$", op["node"])}


def measured(network, options):
    slots, trained = network.program("zvc"), network.folder / "trained"
    start = network.run(slots, 1, "--profile-out", network.folder / "start.json")
    training = network.run(slots, options.steps, "--checkpoint", trained)
    again = ["--resume", trained]
    end = network.run(slots, options.steps + MORE, *again, "--profile-out", network.folder / "end.json")
    room = int(1.02 * max(run["zvc_packed_bytes"] for run in (start, training, end)))
    programs = {"raw": network.program(""), "slots": slots, "pool": network.program(f"zvc:pool={room}")}
    found = {which: [] for which in programs}
    for number in range(options.rounds):
        for which in list(programs) if number % 2 == 0 else list(programs)[::-1]:
            one, all_ = (network.run(programs[which], options.steps + steps, *again) for steps in (1, MORE))
            all_["processor"] = (all_["processor"] - one["processor"]) / (MORE - 1)
            found[which].append(all_)
    assert all(run["losses"] == found["raw"][0]["losses"] for runs in found.values() for run in runs), "zvc is exact"
    return start, training, end, found


def report(network, options):
    start, training, end, found = measured(network, options)
    saved = lambda run: 1 - run["zvc_packed_bytes"] / run["zvc_raw_bytes"]
    print(f"\n### {network.name}, {network.size}x{network.size}, batch {network.batch}\n\nLoss {training['losses'][0]:.2f} at the first step, "
          f"{np.mean(training['losses'][-MORE:]):.3f} over the last {MORE} of {options.steps}. Of {start['zvc_raw_bytes'] / MEBIBYTE:.1f} MiB a step "
          f"zvc saves {saved(start):.1%} at the first step, {saved(end):.1%} after training.\n".replace("%", " %"))
    shares = [network.shares(network.folder / f"{which}.json") for which in ("start", "end")]
    print("| zeros in | first step | trained |\n|---|---|---|")
    for op in shares[0]:
        print(f"| {op} | {shares[0][op]:.1%} | {shares[1][op]:.1%} |".replace("%", " %"))
    print("\n| host memory of | MiB | fastest step, ms | copies and codec, ms a step | processor, ms a step |\n|---|---|---|---|---|")
    middle = {which: {key: statistics.median(run[key] for run in runs) for key in ("host_peak_bytes", "ms", "copies", "processor")} for which, runs in found.items()}
    for which, name in (("raw", "raw bytes"), ("slots", "zvc, a slot a tensor"), ("pool", "zvc, a pool")):
        row = middle[which]
        print(f"| {name} | {row['host_peak_bytes'] / MEBIBYTE:.1f} | {row['ms']:.0f} | {row['copies']:.1f} | {1e3 * row['processor']:.0f} |")
    raw, pool = middle["raw"], middle["pool"]
    print(f"\nThe pool takes {1 - pool['host_peak_bytes'] / raw['host_peak_bytes']:.1%} less than raw slots; packing and unpacking take "
          f"{pool['copies'] - raw['copies']:.0f} ms and {1e3 * (pool['processor'] - raw['processor']):.0f} ms of a processor a step.".replace("%", " %"), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluicec", default=ROOT / "build/bin/sluicec", type=pathlib.Path)
    parser.add_argument("--out", default=ROOT / "build/trained-zeros", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("names", nargs="*", default=list(NETWORKS))
    options = parser.parse_args()
    for name in options.names:
        report(Network(name, options), options)


if __name__ == "__main__":
    main()
