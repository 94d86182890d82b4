#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains every model under every strategy and budget and compares with `keep`: exact plans must give the same bits of all losses, of the
first gradients, and of weights, optimizer state and BatchNorm statistics after the last step; lossy ones stay within TOLERANCES. Standard
library only. All runs of one program must give the same bits.

    test/models/matrix.py --sluicec build/bin/sluicec --out DIR [--full] [--repeat N] [--models a,b] [--strategies 'a;b,k=v'] [--budgets 90,50]
                          [--jobs N] [--emulated] [--flags='--parts=batch=2 --state-home=storage']

Strategies are those that `sluice-plan --help` lists, and MORE. Cells of one model whose placed programs are equal run once. Every run but
the first of a program gets delayed streams, every second one poisoned memory, too. Results are kept in DIR/results.json by what was
compared, so an interrupted matrix goes on where it was; a new compiler starts anew. The table goes to DIR/matrix.md and standard output;
the exit status is 1 when a cell failed.

--full trains the models of make_torchvision.py and some of papers/ instead of those in deep/; --emulated trains the cuda target's programs on the emulator."""
import argparse
import array
import concurrent.futures
import hashlib
import json
import math
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import threading

import emulated

os.environ.setdefault("SLUICE_DEVICE", "host")  # plans do not depend on the machine

STEPS = 5
HERE = pathlib.Path(__file__).parent
DEEP = {name: 8 for name in ("residual", "bottleneck", "vgg", "dense", "mobile", "leaky", "unet", "reversible")}  # batch
FULL = {"resnet18-64": 16, "resnet50-64": 8, "vgg16-224": 4, "densenet121-64": 8, "mobilenet_v2-64": 16, "leaky_resnet18-64": 16, "unet-64": 8}
PAPERS = {"alexnet": 8, "inception_v3": 2}  # of --full, too; the others of papers/ take too long to train
# What a lossy action may change, relative: of the losses, by inversion alone of every step, by codecs of the first two; and of every first
# gradient but under zfp. Tensors are compared by norms over at most SAMPLES elements of each. What follows depends on the network more than on
# the action: with halves, resnet50-64's gradients are within 6e-4 and its third loss, of random batches at 2x2 pixels, 1.6 % off. So
# weights and statistics after the last step are compared all together, and coarsely: a relative change of the learning rate by 1e-5 moves
# those of leaky_resnet18-64 by 0.08.
SAMPLES = 1 << 16
WEIGHTS = 0.1
TOLERANCES = {"invert": 1e-4, "fp16": 1e-2, "zfp": 5e-2}
MARKS = {"invert": '"invert_batch_norm_leaky_relu"|"check_cancellation"', "fp16": '"fp16"', "zfp": '"(mask\+)?zfp'}  # in placed programs that use it
MORE = ["hascoet,fp16=0", "mixed,offload=0,recompute=0+invert"]  # for models with something to invert; name+action: with --allow-lossy=action


def run(command, **environment):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, env=dict(os.environ, **environment))


def without_plan(text):
    """The placed program without the plan that it came from, which names its strategy: brackets within brackets, outside of words."""
    kept, start = [], 0
    for match in re.finditer(r"train\.plan = #train\.plan<", text):
        kept.append(text[start:match.start()])
        depth, start = 1, match.end()
        for token in re.finditer(r'"(?:[^"\\]|\\.)*"|[<>]', text[start:]):
            depth += {"<": 1, ">": -1}.get(token[0], 0)
            if not depth:
                start += token.end()
                break
    return "".join(kept) + text[start:]


class Model:
    def __init__(self, name, path, batch, options):
        self.name, self.path, self.options = name, path, options
        self.flags = [f"--batch={batch}", "--threads=2", "--dropout=keep", *(emulated.FLAGS if options.emulated else []),
                      *(["--init=kaiming"] if name in PAPERS else []), *options.flags.split()]
        self.folder = options.out / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.lock = threading.Lock()
        self.programs = {}  # hash -> future of what came out, for cells that share a program

    def sluicec(self, *flags):
        return run([self.options.sluicec, self.path, "--force", *self.flags, *flags])

    def compile(self, flags, binary):
        """(exit status, errors)"""
        if self.options.emulated:
            return emulated.compile_program(self.options.sluicec, self.path, [*self.flags, *flags], binary)
        compiled = self.sluicec(*flags, "-o", binary)
        return compiled.returncode, compiled.stderr

    def train(self, binary, tag, tolerance=0, **environment):
        """Bits of one run: losses, gradients, checkpoint; with a tolerance, values of the latter two."""
        stem = self.folder / tag
        result = run([binary, "--data", "synthetic", "--steps", STEPS, "--lr", "0.01", "--momentum", "0.9", "--weight-decay", "0.0001",
                      "--seed", "7", "--log", f"{stem}.jsonl", "--dump-gradients", f"{stem}.gradients", "--checkpoint", f"{stem}.checkpoint", "--force",
                      *(["--offload-to", f"{stem}.slots"] if "=storage" in self.options.flags else [])],
                     **environment)
        if result.returncode:
            return f"exit status {result.returncode}: {result.stderr.strip()[-300:]}", None
        losses = re.findall(r'"step":(\d+),"loss":([^,}]*)', pathlib.Path(f"{stem}.jsonl").read_text())
        summary = values if tolerance else digest
        bits = {"losses": losses, "gradients": summary(f"{stem}.gradients"),
                "weights": summary(pathlib.Path(f"{stem}.checkpoint") / "checkpoint.safetensors")}
        os.remove(f"{stem}.jsonl")
        os.remove(f"{stem}.gradients")
        shutil.rmtree(f"{stem}.checkpoint")
        return "", bits

    def reference(self):
        binary = self.folder / "keep"
        status, errors = self.compile(["--strategy=keep"], binary)
        if status:
            sys.exit(f"matrix: {self.name} does not compile: {errors}")
        error, self.keep = self.train(binary, "keep-run")
        if error or len(self.keep["losses"]) != STEPS:
            sys.exit(f"matrix: keep of {self.name} does not train: {error}")
        self.values = self.train(binary, "keep-run", tolerance=1)[1]

    def distance(self, bits, tolerance):
        """What is further from keep than the tolerance."""
        losses = list(zip(bits["losses"], self.keep["losses"]))
        for (step, loss), (_, wanted) in losses if tolerance <= TOLERANCES["invert"] else losses[:2]:
            if not abs(float(loss) - float(wanted)) <= tolerance * abs(float(wanted)):
                return f"loss of step {step} is {loss}, keep's {wanted}"
        norm = lambda values: math.sqrt(sum(x * x for x in values))
        away = {what: {name: norm(x - y for x, y in zip(bits[what][name], wanted)) for name, wanted in self.values[what].items()}
                for what in ("weights", "gradients")}
        whole = {what: norm(norm(wanted) for wanted in self.values[what].values()) for what in away}
        for name, wanted in self.values["gradients"].items() if tolerance <= TOLERANCES["fp16"] else ():
            # What vanishes but for rounding, as the gradient of a bias before a BatchNorm, is measured by the rest.
            if not away["gradients"][name] <= tolerance * max(norm(wanted), 1e-3 * whole["gradients"]):
                return f"the first gradient of {name} is {away['gradients'][name]:g} from keep's, whose norm is {norm(wanted):g}"
        moved = norm(value for name, value in away["weights"].items() if not name.endswith("/momentum"))
        if not moved <= WEIGHTS * whole["weights"]:
            return f"weights are {moved:g} from keep's, whose norm is {whole['weights']:g}"
        return ""

    def difference(self, bits, tolerance):
        if tolerance:
            return self.distance(bits, tolerance)
        for what in ("losses", "gradients", "weights"):
            if bits[what] != self.keep[what]:
                return f"{what} differ from keep's: {bits[what]} and {self.keep[what]}"
        return ""

    def cell(self, strategy, budget):
        """(result, hash of the placed program). The result is ok, within a tolerance, infeasible, no codec (the target lacks one that the
        strategy needs), too large (for the strategy), or what went wrong."""
        name, _, allowed = strategy.partition("+")
        tag, lossy, flags = f"{strategy}-{budget}", [allowed] if allowed else [], [f"--strategy={name}", f"--memory-budget={budget}%act", "--host-budget=unlimited"]
        placed = self.folder / f"{tag}.mlir"
        compiled = self.sluicec(*flags, *["--allow-lossy=" + allowed] * len(lossy), "--emit=placed", "-o", placed)
        # A refusal names one missing action at a time.
        while compiled.returncode == 2 and "--allow-lossy=" in compiled.stderr:
            named = re.search(r"--allow-lossy=([a-z0-9,]+)", compiled.stderr).group(1).split(",")
            if not set(named) - set(lossy):
                break
            lossy += [codec for codec in named if codec not in lossy]
            compiled = self.sluicec(*flags, "--allow-lossy=" + ",".join(lossy), "--emit=placed", "-o", placed)
        if lossy:
            flags.append("--allow-lossy=" + ",".join(lossy))
        if compiled.returncode == 3:
            return "infeasible", ""
        if compiled.returncode:
            for reason, words in (("no codec", "which the target does not execute"), ("too large", "its limit is")):
                if words in compiled.stderr:
                    return reason, ""
            return f"sluicec: {compiled.returncode}: {compiled.stderr.strip()[-300:]}", ""
        text = without_plan(placed.read_text())
        program = hashlib.sha256(text.encode()).hexdigest()[:16]
        placed.unlink()
        with self.lock:
            first = program not in self.programs
            if first:
                self.programs[program] = concurrent.futures.Future()
        future = self.programs[program]
        if first:
            future.set_result(self.check(tag, flags, max([TOLERANCES[action] for action in TOLERANCES if re.search(MARKS[action], text)], default=0)))
        return future.result(), program

    def check(self, tag, flags, tolerance):
        binary = self.folder / tag
        status, errors = self.compile(flags, binary)
        if status:
            return f"compiling: {status}: {errors.strip()[-300:]}"
        first = None
        try:
            for repeat in range(self.options.repeat):
                environment = {"SLUICE_DELAY": str(repeat)} if repeat else {}
                if repeat % 2:
                    environment["SLUICE_POISON"] = "1"
                error, bits = self.train(binary, tag + "-run", tolerance, **environment)
                error = error or self.difference(bits, tolerance)
                first = first or bits
                if error or bits != first:
                    return f"run {repeat + 1} of {tag}: {error or 'losses, gradients or weights are not those of run 1'}"
            return "ok" if not tolerance else f"within {tolerance:g}"
        finally:
            for file in (binary, binary.parent / (binary.name + ".safetensors"), binary.parent / (binary.name + ".onnx-template")):
                file.unlink(missing_ok=True)


def digest(path):
    """Of a safetensors file's tensors; its metadata may name the program."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        header.pop("__metadata__", None)
        result = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
        for block in iter(lambda: file.read(1 << 20), b""):
            result.update(block)
    return result.hexdigest()[:16]


def values(path):
    """Elements of a safetensors file's float tensors, evenly spaced, by name."""
    result = {}
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        for name, entry in json.loads(file.read(length)).items():
            if entry.get("dtype") != "F32":
                continue
            begin, end = entry["data_offsets"]
            file.seek(8 + length + begin)
            elements = array.array("f", file.read(end - begin))
            result[name] = elements[::max(1, len(elements) // SAMPLES)]
    return result


def strategies(options):
    text = run([options.sluicec.parent / "sluice-plan", "--help"]).stdout
    names = re.findall(r"^  (\S+)", text[text.index("Strategies:"):], re.M)
    return [name for name in names + MORE if name != "keep" and (not options.strategies or name in options.strategies.split(";"))]


def models(options):
    chosen = FULL | PAPERS if options.full else DEEP
    root = options.data if options.full else HERE / "deep"
    for name, batch in chosen.items():
        if options.models and name not in options.models.split(","):
            continue
        path = HERE / "papers" / f"{name}.onnx" if name in PAPERS else root / name / "model.onnx"
        if not path.exists():
            sys.exit(f"matrix: {path} is missing; test/models/make_torchvision.py makes it")
        yield Model(name, path, batch, options)


class Results:
    """What is known so far, in a file that is rewritten after every cell."""
    def __init__(self, path, options):
        self.path, self.lock, self.cells = path, threading.Lock(), {}
        compiler = hashlib.sha256(options.sluicec.read_bytes()).hexdigest()
        self.key = {"compiler": compiler, "repeat": options.repeat, "steps": STEPS, "emulated": options.emulated, "flags": options.flags}
        if path.exists():
            stored = json.loads(path.read_text())
            if stored["key"] == self.key:
                self.cells = stored["cells"]

    def put(self, name, value):
        with self.lock:
            self.cells[name] = value
            aside = self.path.with_suffix(".partial")
            aside.write_text(json.dumps({"key": self.key, "cells": self.cells}, indent=1))
            aside.replace(self.path)


def table(results, names, chosen, budgets):
    lines = []
    for model in names:
        lines += [f"## {model}", "", "| strategy | " + " | ".join(f"{b} %act" for b in budgets) + " |", "|---" * (len(budgets) + 1) + "|"]
        for strategy in chosen:
            row = [results.cells.get(f"{model} {strategy} {budget}", ("", "")) for budget in budgets]
            lines.append(f"| {strategy} | " + " | ".join(result + (f" `{program[:4]}`" if program else "") for result, program in row) + " |")
        programs = {program for cell, (_, program) in results.cells.items() if cell.startswith(model + " ")} - {""}
        lines += ["", f"{len(programs)} different programs.", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluicec", type=pathlib.Path, default=HERE.parent.parent / "build/bin/sluicec")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path.home() / ".cache/sluice/models")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--emulated", action="store_true")
    parser.add_argument("--flags", default="", help="more flags of sluicec for every program, as --precision=bf16")
    parser.add_argument("--repeat", type=int, default=2, help="runs of every program")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--models")
    parser.add_argument("--strategies")
    parser.add_argument("--budgets", type=lambda text: [int(b) for b in text.split(",")], default=[90, 70, 50, 35], help="in %% of the activations")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    chosen, names = strategies(options), []
    results = Results(options.out / "results.json", options)
    for model in models(options):
        names.append(model.name)
        missing = [(s, b) for s in chosen for b in options.budgets if ("leaky" in model.name or model.name == "reversible" or s not in MORE) and f"{model.name} {s} {b}" not in results.cells]
        if not missing:
            continue
        model.reference()
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for (strategy, budget), future in [(cell, pool.submit(model.cell, *cell)) for cell in missing]:
                results.put(f"{model.name} {strategy} {budget}", future.result())
        print(f"matrix: {model.name}: {len(model.programs)} programs trained", file=sys.stderr, flush=True)
    text = table(results, names, chosen, options.budgets)
    (options.out / "matrix.md").write_text(text)
    print(text)
    good = ("ok", "within", "infeasible", "no codec", "too large")
    bad = [(cell, result) for cell, (result, _) in results.cells.items() if not result.startswith(good)]
    for cell, result in bad:
        print(f"matrix: {cell}: {result}", file=sys.stderr)
    trained = sum(result.startswith(("ok", "within")) for result, _ in results.cells.values())
    print(f"matrix: {len(results.cells)} cells, {trained} trained like keep, {len(bad)} failed")
    sys.exit(1 if bad or not trained else 0)


if __name__ == "__main__":
    main()
