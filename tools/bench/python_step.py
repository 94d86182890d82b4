#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A step from Python beside a call of the library with arguments that are ready and beside a step of the program of the same file: medians, in turns.
PYTHONPATH has the package, the PATH sluicec.

    tools/bench/python_step.py [--steps N] [--rounds N] MODEL.onnx DATA [FLAG=VALUE of sluicec]...

The program runs under chrt -f 10; the trainer is opened, and called, by a thread of that priority, which its library's threads inherit.
"""
import argparse
import ctypes
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

import numpy as np

import sluice
from sluice._abi import tensors
from sluice._arrays import named

os.environ["OMP_WAIT_POLICY"] = "passive"  # as programs do


def of_program(program, data, steps):
    said = subprocess.run(["chrt", "-f", "10", program, "--data", data, "--steps", str(steps), "--lr", "0.001"], check=True, capture_output=True, text=True).stdout
    return float(re.search(r"time: +([0-9.e+-]+) s a step", said)[1])


def median(call, batches, steps):
    seconds = []
    for step in range(steps):
        x, y = batches[step % len(batches)]
        begin = time.perf_counter()
        call(x, y)
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def ready(trainer, batches):
    """The batches as the library takes them, and what keeps them alive."""
    arrays = [(named(x, trainer._inputs), named(y, trainer._targets)) for x, y in batches]
    return [(tensors(x), tensors(y)) for x, y in arrays], arrays


def measure(program, trainer, options):
    x, y = (np.load(options.data / f"{name}.npy") for name in ("input", "target"))
    size, loss = trainer.batch, ctypes.c_float()
    batches = [(x[at:at + size], y[at:at + size]) for at in range(0, len(x) - size + 1, size)]
    prepared, _alive = ready(trainer, batches)
    call = lambda x, y: trainer._library.step(trainer._handle, *x, *y, ctypes.byref(loss))  # noqa: E731
    rounds = []
    for _ in range(options.rounds):
        rounds.append((of_program(program, options.data, options.steps), median(call, prepared, options.steps), median(trainer.step, batches, options.steps)))
        print("program {:.1f} us, call {:.1f} us, Python {:.1f} us".format(*(1e6 * seconds for seconds in rounds[-1])))
    print("medians: program {:.1f} us, call {:.1f} us, Python {:.1f} us".format(*(1e6 * statistics.median(column) for column in zip(*rounds))))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("flags", nargs="*")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/program"
        subprocess.run(["sluicec", options.model, *[f"--{flag}" for flag in options.flags], "-o", program], check=True, stdout=subprocess.DEVNULL)
        flags = dict(flag.split("=") for flag in options.flags)
        sluice.compile(options.model, **flags).close()  # from now on it is only loaded
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        with sluice.compile(options.model, **flags) as trainer:
            trainer.set(lr=0.001)
            measure(program, trainer, options)


main()
