#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our rotor's table against the solver of its authors: rockmate 2.0.0 from the Python index, both of its implementations (C and Python).

    python3 -m venv V && V/bin/pip install --no-deps rockmate==2.0.0
    V/bin/python tools/bench/rotor_peer.py [--chains 1000] [--seed 1] [--table build/bin/rotor-table]

Draws chains, asks for the fastest schedule with every number of bytes from none to the chain's peak, and compares the seconds, which are integers.
The two count memory differently where a chain's boundaries differ in size, so these chains are those on which both mean the same:

- every x_i and y_i has c bytes. Rockmate has one size for both, and adds the output's gradient to runs without saving only;
- `saved` is any, and what a forward op needs besides, saved + ex_f, is one number E for all ops: rockmate asks for the room of runs without
  saving of all ops of a part, wherever it is cut, ours of those that run;
- x + saved + ex_b is at least E, so that a part that cannot run without saving cannot run at all; ours does not ask.

Rockmate's fwd_tmp is ex_f, its bwd_tmp is ex_b + c (the gradient that B_i reads), its ff_fwd_tmp is E, its budget does not count x_0."""
import argparse
import importlib
import importlib.util
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile
import types

ROOT = pathlib.Path(__file__).resolve().parents[2]


def solvers():
    """Rockmate's two solvers, without the rest of the package, which needs PyTorch."""
    found = importlib.util.find_spec("rockmate")
    if not found:
        sys.exit("rotor_peer: rockmate is not installed")
    folder = pathlib.Path(found.origin).parent
    for name, path in (("rockmate", folder), ("rockmate.solvers", folder / "solvers"), ("rockmate.solvers.rk_rotor", folder / "solvers/rk_rotor")):
        module = types.ModuleType(name)
        module.__path__ = [str(path)]
        sys.modules[name] = module
    # What rotor_solver.py makes of its table is not asked for here, and needs PyTorch.
    sequence = types.ModuleType("rockmate.solvers.rk_rotor.def_sequence")
    for name in ("SeqBlockFn", "SeqBlockFc", "SeqBlockFe", "SeqBlockBwd", "SeqLoss", "RK_Sequence"):
        setattr(sequence, name, None)
    sys.modules[sequence.__name__] = sequence
    table = importlib.import_module("rockmate.solvers.rk_rotor.csolver").RkTable
    return table, importlib.import_module("rockmate.solvers.rk_rotor.rotor_solver").psolve_dp_functional


def draw(rng, stages):
    """(our chain file, rockmate's chain) of so many stages, the last of which is rockmate's loss."""
    c, e = rng.randint(1, 6), rng.randint(0, 9)
    saved = [rng.randint(0, e) for _ in range(stages)]
    least = [max(0, e - c - s) for s in saved]
    ours = {"kind": "chain", "u_f": [rng.randint(0, 20) for _ in saved], "u_b": [rng.randint(0, 40) for _ in saved], "x": [c] * (stages + 1),
            "y": [c] * (stages + 1), "ex_f": [e - s for s in saved], "ex_b": [least[i] + rng.randint(0, 6) for i in range(stages)],
            "saved": saved, "bandwidth": 1}
    theirs = types.SimpleNamespace(
        ln=stages - 1, nb_sol=[1] * stages, fw=[[float(t)] for t in ours["u_f"]], bw=[[float(t)] for t in ours["u_b"]], cw=[c] * (stages + 1),
        cbw=[[0]] + [[c + s] for s in saved], fwd_tmp=[[t] for t in ours["ex_f"]], bwd_tmp=[[t + c] for t in ours["ex_b"]],
        ff_fwd_tmp=[e] * stages, ff_fw=[float(t) for t in ours["u_f"]])
    return ours, theirs


def peak(chain):
    """Bytes of the moment that needs most when everything is kept."""
    kept, most = chain["x"][0], 0
    for i, saved in enumerate(chain["saved"]):
        kept += chain["x"][i + 1] + saved
        most = max(most, kept + chain["ex_f"][i], kept + chain["y"][i] + chain["y"][i + 1] + chain["ex_b"][i])
    return most


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chains", type=int, default=1000)
    parser.add_argument("--stages", type=int, default=12, help="of the longest chain")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--table", default=ROOT / "build/bin/rotor-table", type=pathlib.Path)
    options = parser.parse_args()
    table, python_solver = solvers()
    rng = random.Random(options.seed)
    compared = feasible = rerun = 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "chain.json"
        for number in range(options.chains):
            ours, theirs = draw(rng, rng.randint(2, options.stages))
            path.write_text(json.dumps(ours))
            slots = peak(ours)
            printed = subprocess.run([options.table, path, str(slots)], check=True, capture_output=True, text=True).stdout
            own = [float(line) for line in printed.split()]
            everything = sum(ours["u_f"]) + sum(ours["u_b"])
            native = table(theirs, slots)
            for m in range(ours["x"][0], slots + 1):
                left = m - ours["x"][0]
                peers = (native.get_opt(left), python_solver(theirs, left)[0][left][0][theirs.ln])
                if any(peer != own[m] for peer in peers):
                    sys.exit(f"rotor_peer: chain {number}, {m} bytes: ours {own[m]}, rockmate's C {peers[0]}, Python {peers[1]}: {json.dumps(ours)}")
                compared += 1
                feasible += math.isfinite(own[m])
                rerun += math.isfinite(own[m]) and own[m] > everything
    print(f"{options.chains} chains, {compared} memories: equal seconds in all; {feasible} have a schedule, {rerun} of them run stages again")


main()
