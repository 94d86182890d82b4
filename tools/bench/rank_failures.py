#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills, stops and hangs random ranks of runs, and looks how all others end.

    tools/bench/rank_failures.py [--sluicec build/bin/sluicec] [--runs 20] [--ranks 3] [--seed 1]

Each run trains a tiny model, until a random rank gets SIGKILL, SIGSTOP or SIGTERM at a random step, or a random one of its ops does not end (hang); then it goes on from its last checkpoint,
to the end, and has to leave the bits of one that nothing happened to. Prints for each how long the slowest took from there (of a hang: from the last line of the log) to the end of
mpirun and of all ranks, how many runs said in one line which rank was lost or waited for, and how many processes were left."""
import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/execute/inputs"))
import end_rank  # noqa: E402

ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl": "self,vader",
               "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}


TASKS = 20  # of the stream of ops in a step of tiny/mlp, about


def disturb(command, log, name, rank, step):
    """Seconds to the end, what it said, processes left."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, env={**os.environ, **ENVIRONMENT})
        while end_rank.steps_of(log) < step:
            if process.poll() is not None:
                sys.exit(f"ended with {process.returncode} before step {step}")
            time.sleep(0.005)
        ranks = end_rank.ranks_of(process.pid)
        handles = [end_rank.handle_of(pid) for pid in ranks.values()]
        begin = time.time()
        if name != "hang":
            os.kill(ranks[rank], getattr(signal, name))
        process.wait()
        left = end_rank.left_of(handles)
        seconds = time.time() - (log.stat().st_mtime if name == "hang" else begin)
        said.seek(0)
        return seconds, said.read().decode(errors="replace"), left


def hanging(train, more, rank, ranks, step):
    """The command of which that rank hangs at about that step: MPI's launcher takes a part for each rank with an environment of its own."""
    launcher, program = train[:train.index("-n")], [*train[train.index("-n") + 2:], *more]
    parts = [[*(launcher if one == 0 else [":"]), "-n", "1", *(["env", f"SLUICE_FAULT=hang:{step * TASKS}"] if one == rank else []), *program]
             for one in range(ranks)]
    return [word for part in parts for word in part]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluicec", type=pathlib.Path, default=ROOT / "build/bin/sluicec")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        subprocess.run([options.sluicec, ROOT / "test/models/tiny/mlp/model.onnx", "--batch=2", "--ranks=mpi", "-o", folder / "mlp"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        mpirun = ["mpirun", "-q", "--oversubscribe", "--bind-to", "none", "-n", str(options.ranks)]
        steps = 5000
        train = [*mpirun, folder / "mlp", "--data", ROOT / "test/models/tiny/mlp/data", "--lr", "0.001", "--threads", "1", "--shuffle",
                 "--steps", str(steps), "--checkpoint-every", "100"]
        quiet = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": {**os.environ, **ENVIRONMENT}}
        subprocess.run([*train, "--checkpoint", folder / "whole"], **quiet)
        whole = (folder / "whole/checkpoint.safetensors").read_bytes()
        results = {}
        for number in range(options.runs):
            name, rank, step = draw.choice(["SIGKILL", "SIGSTOP", "SIGTERM", "hang"]), draw.randrange(options.ranks), draw.randrange(200, 2000)
            run, log = folder / f"run{number}", folder / f"{number}.jsonl"
            more = ["--checkpoint", run, "--log", log]
            command = hanging(train, more, rank, options.ranks, step) if name == "hang" else [*train, *more]
            seconds, said, left = disturb(command, log, name, rank, min(step, 100) if name == "hang" else step)
            subprocess.run([*train, "--checkpoint", run, "--resume", run], **quiet)
            same = (run / "checkpoint.safetensors").read_bytes() == whole
            lines = [line for line in said.splitlines() if ("mlp: error: " in line and "rank" in line) or "interrupted after step" in line]
            named = len(lines) == 1
            results.setdefault(name, []).append((seconds, named, left, same))
            print(json.dumps({"signal": name, "rank": rank, "step": step, "seconds": round(seconds, 2), "lines": lines,
                              "left": left, "same": same}), flush=True)
        print("| signal | runs | slowest end, s | told in one line | processes left | same bits after resuming |\n|---|---|---|---|---|---|")
        for name, runs in sorted(results.items()):
            print(f"| {name} | {len(runs)} | {max(r[0] for r in runs):.1f} | {sum(r[1] for r in runs)} | {sum(r[2] for r in runs)} | "
                  f"{sum(r[3] for r in runs)} |")


if __name__ == "__main__":
    main()
