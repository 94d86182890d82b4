#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills a training run at random moments, lets it go on from its last checkpoint, and compares what it ends with.

    tools/bench/kill_moments.py MODEL DATA [--sluicec build/bin/sluicec] [--flags ''] [--runs 100] [--steps 30] [--seed 1] [--calls N [--within 30000]]

MODEL is a file, or 'wide', two layers of 512 features for --loss=mse (needs onnx); DATA is a folder of .npy files or 'synthetic'. Each run writes a checkpoint after each step and gets SIGKILL at a random moment of the time that a run takes which nothing happens to, then goes on from its last
checkpoint, or from the beginning where there is none, to the end. Its exported weights must be the bits of the undisturbed run. Streams are delayed at random (SLUICE_DELAY), so that transfers and updates on the host
are under way more often. With `--calls` the program is one of the emulator's (test/models/emulated.py install) in which N updates run in host memory: it is killed up to as many nanoseconds after one of them,
drawn at random, has begun. Prints how many runs were killed before their first checkpoint, between, and not at all, as they had ended, and how many ended with other bits."""
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


def write_wide(file, width=512):
    import onnx
    from onnx import TensorProto, helper

    names = ["first", "second"]
    weights = [helper.make_tensor(name, TensorProto.FLOAT, [width, width], [((7 * i) % 101 - 50) / 2000 for i in range(width * width)]) for name in names]
    nodes = [helper.make_node("Gemm", ["x", "first"], ["h"]), helper.make_node("Relu", ["h"], ["r"]), helper.make_node("Gemm", ["r", "second"], ["y"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", width]) for name in "xy"]
    onnx.save(helper.make_model(helper.make_graph(nodes, "wide", ends[:1], ends[1:], weights), opset_imports=[helper.make_opsetid("", 17)]), file)
    return file


class Run:
    def __init__(self, folder, program, data, steps, on_host):
        self.folder = folder
        self.command = [program, "--data", data, "--steps", steps, "--lr", "0.01", "--checkpoint", folder / "run", "--checkpoint-every", "1", "--keep-checkpoints", "2", "--export",
                        folder / "trained.safetensors", "--force", *(["--offload-to", folder / "homes"] if on_host else [])]

    def start(self, *words, **environment):
        return subprocess.Popen([str(word) for word in [*self.command, *words]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                env={**os.environ, "SLUICE_DELAY": "1", **environment})

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

    def kill_in_call(self, number, nanoseconds):
        """Whether it was still running, and whether that call was."""
        process = self.start(EMULATED_KILL=f"{number},{nanoseconds}")
        said = process.communicate()[0]
        return process.returncode == -signal.SIGKILL, "killed within a call" in said


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--sluicec", default="build/bin/sluicec")
    parser.add_argument("--flags", default="")
    for name, value in (("runs", 100), ("steps", 30), ("seed", 1), ("calls", 0), ("within", 30000)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    moments, count = random.Random(options.seed), collections.Counter()
    with tempfile.TemporaryDirectory() as base:
        base = pathlib.Path(base)
        program = base / "program"
        model = write_wide(base / "wide.onnx") if options.model == "wide" else options.model
        subprocess.run([options.sluicec, model, *options.flags.split(), "-o", program], check=True)
        undisturbed = base / "undisturbed"
        undisturbed.mkdir()
        begin = time.monotonic()
        wanted = Run(undisturbed, program, options.data, options.steps, not options.calls).finish()
        seconds = time.monotonic() - begin
        for number in range(options.runs):
            folder = base / str(number)
            folder.mkdir()
            run = Run(folder, program, options.data, options.steps, not options.calls)
            if options.calls:
                killed, inside = run.kill_in_call(moments.randint(1, options.calls), moments.randrange(options.within))
                count["killed within an update"] += inside
            else:
                killed = run.kill(moments.random() * seconds)
            begun = (folder / "run/checkpoint.safetensors").exists()
            count["ended before" if not killed else "killed after a checkpoint" if begun else "killed before one"] += 1
            count["other bits"] += run.finish(*(["--resume", folder / "run"] if begun else [])) != wanted
            print(f"\r{number + 1} of {options.runs}", end="", file=sys.stderr, flush=True)
    print(f"\n{options.runs} runs of {seconds:.1f} s: " + ", ".join(f"{value} {name}" for name, value in count.items()))
    return count["other bits"] > 0


if __name__ == "__main__":
    sys.exit(main())
