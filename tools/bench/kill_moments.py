#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills a training run at random moments, lets it go on from its last checkpoint, and compares what it ends with.

    tools/bench/kill_moments.py MODEL DATA [--sluicec build/bin/sluicec] [--flags ''] [--runs 100] [--steps 30] [--seed 1]

DATA is a folder of .npy files or 'synthetic'. Each run writes a checkpoint after each step and gets SIGKILL at a random moment of the time that a run takes which nothing happens to, then goes on from its last
checkpoint, or from the beginning where there is none, to the end. Its exported weights must be the bits of the undisturbed run. Streams are delayed at random (SLUICE_DELAY), so that transfers and updates on the host
are under way more often. Prints how many runs were killed before their first checkpoint, between, and not at all, as they had ended, and how many ended with other bits."""
import argparse
import collections
import hashlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time


class Run:
    def __init__(self, folder, program, data, steps):
        self.folder = folder
        self.command = [program, "--data", data, "--steps", steps, "--lr", "0.01", "--checkpoint", folder / "run", "--checkpoint-every", "1", "--keep-checkpoints", "2", "--export",
                        folder / "trained.safetensors", "--offload-to", folder / "homes", "--force"]

    def start(self, *words):
        return subprocess.Popen([str(word) for word in [*self.command, *words]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "SLUICE_DELAY": "1"})

    def finish(self, *words):
        process = self.start(*words)
        said = process.communicate()[0]
        if process.returncode:
            raise SystemExit(f"{' '.join(map(str, [*self.command, *words]))}: {said}")
        return hashlib.sha256((self.folder / "trained.safetensors").read_bytes()).hexdigest()

    def kill(self, seconds):
        """Whether it was still running."""
        process = self.start()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate()
        return process.returncode == -signal.SIGKILL


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--sluicec", default="build/bin/sluicec")
    parser.add_argument("--flags", default="")
    for name, value in (("runs", 100), ("steps", 30), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    moments, count = random.Random(options.seed), collections.Counter()
    with tempfile.TemporaryDirectory() as base:
        base = pathlib.Path(base)
        program = base / "program"
        subprocess.run([options.sluicec, options.model, *options.flags.split(), "-o", program], check=True)
        undisturbed = base / "undisturbed"
        undisturbed.mkdir()
        begin = time.monotonic()
        wanted = Run(undisturbed, program, options.data, options.steps).finish()
        seconds = time.monotonic() - begin
        for number in range(options.runs):
            folder = base / str(number)
            folder.mkdir()
            run = Run(folder, program, options.data, options.steps)
            killed = run.kill(moments.random() * seconds)
            begun = (folder / "run/checkpoint.safetensors").exists()
            count["ended before" if not killed else "killed after a checkpoint" if begun else "killed before one"] += 1
            count["other bits"] += run.finish(*(["--resume", folder / "run"] if begun else [])) != wanted
            print(f"\r{number + 1} of {options.runs}", end="", file=sys.stderr, flush=True)
    print(f"\n{options.runs} runs of {seconds:.1f} s: " + ", ".join(f"{value} {name}" for name, value in count.items()))
    return count["other bits"] > 0


if __name__ == "__main__":
    sys.exit(main())
