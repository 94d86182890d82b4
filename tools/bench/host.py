#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps of fifteen models on this processor: Sluice in fp32 and bf16 beside PyTorch eager, channels_last, compiled, in autocast, and compiled in autocast.

    host.py [--models resnet50,gpt] [--rounds 3] [--steps 3] [--threads N] [--again] [--no-compile] [--work DIR] [--sluicec build/bin/sluicec]
    host.py --page docs/results/host.md [--note TEXT]   writes the page and its plot of what has been measured

Each model is exported once into --work, and compiled by sluicec with --strategy=keep. A round asks every contender in turn for --steps steps, all with the same number of threads; the order goes round
from round to round. While they count, and while PyTorch warms up without compiling, a contender's threads have real-time priority (SCHED_FIFO 10), so that what else the machine does waits: where that is not allowed, the result says so. A number
is the median over rounds of each round's median. A line of DIR/results.jsonl a model: a run goes on where the one before ended, --again measures anew. torch.compile takes minutes for some
models. Needs the Python environment of tools/setup.sh --references."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRIORITY = 10

sys.path.insert(0, str(ROOT / "test/models"))
from host_models import NETS  # noqa: E402
from host_page import write_page  # noqa: E402
from host_torch import MODES  # noqa: E402


def prioritize(thread, on):
    """False where it is not allowed."""
    try:
        os.sched_setscheduler(thread, os.SCHED_FIFO if on else os.SCHED_OTHER, os.sched_param(PRIORITY if on else 0))
    except (PermissionError, ProcessLookupError):
        return False
    return True


class Program:
    """A program of sluicec; every round starts it anew, and leaves out its first step, which touches the pages."""
    def __init__(self, options, name, precision):
        self.options, self.path = options, options.work / name / precision
        net = NETS[name]
        subprocess.run([options.sluicec, options.work / name / "model.onnx", f"--batch={net.batch}", f"--loss={net.loss}", f"--precision={precision}", "--dropout=off",
                        "--strategy=keep", f"--threads={options.threads}", "--force", "-o", self.path], check=True, stdout=subprocess.DEVNULL)

    def measure(self, steps):
        log = self.path.with_suffix(".jsonl")
        subprocess.run([self.path, "--data", "synthetic", "--steps", str(steps + 1), "--lr", "0.001", "--quiet", "--force", "--log", log], check=True,
                       preexec_fn=lambda: prioritize(0, True))
        events = [json.loads(line) for line in log.read_text().splitlines()]
        end = next(event for event in events if event["event"] == "end")
        steps = [event["ms"] / 1e3 for event in events if event["event"] == "step"][1:]
        return {"seconds": steps, "resident": end["resident_peak_bytes"], "predicted": end["predicted_ms"] / 1e3}

    def end(self):
        pass


class Torch:
    """A process of PyTorch that stays, warm, from round to round."""
    def __init__(self, options, name, mode):
        self.process = subprocess.Popen([sys.executable, pathlib.Path(__file__).parent / "host_torch.py", name, mode, str(options.threads)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=open(options.work / name / f"{mode}.txt", "w"), text=True,
                                        preexec_fn=lambda: prioritize(0, "compile" not in mode))
        self.facts = self.answer(f"see {options.work / name / mode}.txt")
        self.prioritize_all(False)

    def answer(self, hint=""):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"PyTorch ended with status {self.process.wait()} {hint}")
        return json.loads(line)

    def measure(self, steps):
        self.prioritize_all(True)
        print(steps, file=self.process.stdin, flush=True)
        try:
            return self.answer()
        finally:
            self.prioritize_all(False)

    def prioritize_all(self, on):
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            prioritize(int(thread), on)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def export_model(options, name):
    """In a process of its own: this one keeps no memory of it."""
    path = options.work / name / "model.onnx"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        code = f"import torch; torch.manual_seed(1); from host_models import NETS; from reference import export; net = NETS[{name!r}]; export(net.make(), net.data()[0], {str(path)!r})"
        search = os.pathsep.join([str(pathlib.Path(__file__).parent), str(ROOT / "test/models")])
        subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": search})


def processor():
    """Its name, and what of it kernels use."""
    text = pathlib.Path("/proc/cpuinfo").read_text()
    name = next((line.split(": ", 1)[1] for line in text.splitlines() if line.startswith("model name")), "unknown")
    number = next((line.split(": ", 1)[1] for line in text.splitlines() if line.startswith("model\t")), "?")
    flags = text.split()
    return {"processor": f"{name}, model {number}", "instructions": [flag for flag in ("avx2", "avx512f", "avx512_bf16", "avx512_fp16", "amx_bf16") if flag in flags]}


def facts(options):
    run = lambda *command: subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stdout.strip()
    changed = " and changes" if run("git", "status", "--porcelain", "--untracked-files=no") else ""
    return {**processor(), "threads": options.threads, "rounds": options.rounds, "steps": options.steps, "sluicec": run(options.sluicec, "--version").splitlines()[0],
            "commit": run("git", "rev-parse", "--short", "HEAD") + changed}


def measure(options, name):
    """The line of one model."""
    export_model(options, name)
    contenders, failed = {}, {}
    modes = [mode for precision in MODES.values() for mode in precision
             if not (options.no_compile and "compile" in mode) and (NETS[name].sees_images or mode != "channels_last")]
    try:
        for contender, make in [(f"sluice {precision}", lambda p=precision: Program(options, name, p)) for precision in MODES] + [
                (mode, lambda m=mode: Torch(options, name, m)) for mode in modes]:
            print(f"{name}: {contender} is made ready", file=sys.stderr)
            try:
                contenders[contender] = make()
            except (RuntimeError, subprocess.CalledProcessError) as error:
                failed[contender] = str(error)
        results = {contender: [] for contender in contenders}
        for round_ in range(options.rounds):
            order = list(contenders)
            for contender in order[round_ % len(order):] + order[:round_ % len(order)]:
                results[contender].append(contenders[contender].measure(options.steps))
            print(f"{name}: round {round_ + 1}: " + ", ".join(f"{c} {statistics.median(r[-1]['seconds']):.3f} s" for c, r in results.items()), file=sys.stderr)
        torch = next((c.facts for c in contenders.values() if isinstance(c, Torch)), {"torch": "none", "imported": 0})
    finally:
        for contender in contenders.values():
            contender.end()
    summary = {c: {"seconds": statistics.median(statistics.median(r["seconds"]) for r in rounds), "rounds": [r["seconds"] for r in rounds],
                   "resident": max(r["resident"] for r in rounds), **({"predicted": rounds[0]["predicted"]} if "predicted" in rounds[0] else {})}
               for c, rounds in results.items()}
    return {"model": name, "title": NETS[name].title, "batch": NETS[name].batch, **facts(options), **torch, "realtime": options.realtime, "contenders": summary, "failed": failed}


def known(path):
    """The last line of each model."""
    return {row["model"]: row for row in map(json.loads, path.read_text().splitlines())} if path.exists() else {}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(NETS), help="names, with commas between")
    for flag, default in (("--rounds", 3), ("--steps", 3), ("--threads", os.cpu_count())):
        parser.add_argument(flag, type=int, default=default)
    parser.add_argument("--again", action="store_true", help="measure what has a result, too")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path.home() / ".cache/sluice/host")
    parser.add_argument("--sluicec", default=str(ROOT / "build/bin/sluicec"))
    parser.add_argument("--page", type=pathlib.Path, help="write what has been measured")
    parser.add_argument("--note", default="", help="of the page: what else is to be known of these numbers")
    options = parser.parse_args()
    if unknown := set(options.models.split(",")) - set(NETS):
        parser.error(f"no model {', '.join(sorted(unknown))}; there are {', '.join(NETS)}")
    options.work = options.work.resolve()
    results = options.work / "results.jsonl"
    if options.page:
        write_page(options.page, [row for name, row in known(results).items() if name in options.models.split(",")], options.note)
        return
    options.realtime = prioritize(0, True)
    prioritize(0, False)
    if not options.realtime:
        print("host.py: no real-time priority is to be had: what else the machine does is in the numbers", file=sys.stderr)
    for name in options.models.split(","):
        if name in known(results) and not options.again:
            print(f"{name}: has a result", file=sys.stderr)
            continue
        row = measure(options, name)
        with open(results, "a") as file:
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
