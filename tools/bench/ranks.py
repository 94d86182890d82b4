#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a step of several ranks takes beside one of one process, each on one core with the same batch a rank.

    tools/bench/ranks.py [--sluicec build/bin/sluicec] [--model MODEL.onnx] [--batch 8] [--ranks 2] [--steps 6] [--rounds 3] [--optimizer sgd|adam] [--torch PYTHON] [--priority N]

Programs for one process, alone and while other cores have as much to do, and for several with ordered sums and with fast ones, as one rank and as RANKS of them, and with shares of states, of gradients and of parameters, run one
after the other, ROUNDS times. A figure is the fastest step of all rounds, the first one of each left out: other work can only add to it. Prints a row for each, with the bytes that a
program announced, those that it touched, and those that its whole process had resident at most. --torch also runs PyTorch's ResNet-50 (ranks_torch.py), by DDP and by FSDP. --priority runs what is measured, and
that alone, at this real-time priority; sums of a rank on one core then wait until its computation gives the core away."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


PRIORITY = []  # what stands before measured commands


def run(command, log):
    """Fastest step in ms; bytes announced, touched and resident."""
    log.unlink(missing_ok=True)
    said = subprocess.run([*PRIORITY, *command, "--log", log], check=True, capture_output=True, text=True, env={**os.environ, **ENVIRONMENT}).stdout
    events = [json.loads(line) for line in log.open()]
    steps = [event["ms"] for event in events if event["event"] == "step"][1:]
    start, end = events[0], events[-1]
    return (min(steps), start["device_bytes"] + start["host_bytes"], end["device_peak_bytes"] + end["host_peak_bytes"],
            int(re.search(r"whole process: (\d+) bytes", said)[1]))


def run_beside(program, train, ranks, folder):
    """One process on the first core while others, which know nothing of it, have one each."""
    others = [subprocess.Popen([*PRIORITY, "taskset", "-c", str(core), program, *train[:-1], "1000000"], stdout=subprocess.DEVNULL)
              for core in range(1, ranks)]
    try:
        return run(["taskset", "-c", "0", program, *train], folder / "log.jsonl")
    finally:
        for other in others:
            other.kill()
            other.wait()


def torch(python, ranks, options, folder, *more):
    """The same of PyTorch, which announces nothing."""
    store = folder / "store"
    store.unlink(missing_ok=True)
    words = [*PRIORITY, python, ROOT / "tools/bench/ranks_torch.py"]
    processes = [subprocess.Popen([*words, str(rank), str(ranks), store, str(options.batch), str(options.steps), "224", options.optimizer, *more],
                                  stdout=subprocess.PIPE)
                 for rank in range(ranks)]
    said = [process.communicate()[0] for process in processes]
    one = json.loads(said[0])
    return one["ms"], "", "", one["resident"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluicec", type=pathlib.Path, default=ROOT / "build/bin/sluicec")
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / "test/models/papers/resnet50.onnx")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--optimizer", choices=["sgd", "adam"], default="sgd")
    parser.add_argument("--torch", type=pathlib.Path)
    parser.add_argument("--priority")
    options = parser.parse_args()
    PRIORITY.extend(["chrt", "-f", options.priority] if options.priority else [])
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        flags = {"single": [], "ordered": ["--ranks=mpi"], "fast": ["--ranks=mpi", "--reduce=fast"]}
        for what in ("states", "gradients", "parameters"):
            flags[what] = ["--ranks=mpi", f"--shard={what},ranks={options.ranks}"]
        for name, more in flags.items():
            subprocess.run([options.sluicec, options.model, f"--batch={options.batch}", "--threads=1", "--init=kaiming", f"--optimizer={options.optimizer}", *more,
                            "-o", folder / name], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        train = ["--data", "synthetic", "--lr", "0.001", "--threads", "1", "--steps", str(options.steps)]
        alone, together = ["taskset", "-c", "0"], ["mpirun", "-q", "--bind-to", "core", "-n", str(options.ranks)]
        log = folder / "log.jsonl"
        rows = {"one process, no MPI": lambda: run([*alone, folder / "single", *train], log),
                f"one process beside {options.ranks - 1} of its like": lambda: run_beside(folder / "single", train, options.ranks, folder),
                "1 rank, ordered": lambda: run([*alone, folder / "ordered", *train], log),
                f"{options.ranks} ranks, ordered": lambda: run([*together, folder / "ordered", *train], log),
                f"{options.ranks} ranks, fast": lambda: run([*together, folder / "fast", *train], log),
                f"{options.ranks} ranks, shares of states": lambda: run([*together, folder / "states", *train], log),
                f"{options.ranks} ranks, shares of gradients": lambda: run([*together, folder / "gradients", *train], log),
                f"{options.ranks} ranks, shares of parameters": lambda: run([*together, folder / "parameters", *train], log)}
        if options.torch:
            rows["PyTorch, one process"] = lambda: torch(options.torch, 1, options, folder)
            rows[f"PyTorch DDP, gloo, {options.ranks} processes"] = lambda: torch(options.torch, options.ranks, options, folder)
            rows[f"PyTorch FSDP, gloo, {options.ranks} processes"] = lambda: torch(options.torch, options.ranks, options, folder, "fsdp")
        measured = {name: [] for name in rows}
        for _ in range(options.rounds):
            for name, measure in rows.items():
                measured[name].append(measure())
        base = min(row[0] for row in measured["one process, no MPI"])
        print(f"{options.model.name}, batch {options.batch} a rank, {options.steps} steps, {options.rounds} rounds")
        print("| program | ms a step | beside one process | bytes planned | touched | process |\n|---|---|---|---|---|---|")
        for name, runs in measured.items():
            ms, planned, touched, resident = min(runs)
            print(f"| {name} | {ms:.1f} | {ms / base:.3f} | {planned} | {touched} | {resident} |")


if __name__ == "__main__":
    main()
