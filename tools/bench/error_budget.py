#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Planned overhead of an error budget's choice of codec and rate per tensor against one codec for all tensors, as Markdown on stdout.

    tools/bench/error_budget.py --errors FOLDER NAME=MODEL.onnx:BATCH[:BUDGET]... [--devices v100-pcie,titan-x,host] [--budget 25%act] [--limits 3e-3,1e-2]

FOLDER/NAME.json is a profile with the errors that a program of the model measured (--profile-out with --profile-errors); where there is none,
codecs have their usual errors, and the table says so. Every plan is mixed's own (`takeover=0`) within the same memory and error budget, for
--target=cuda, or the host's where that is the device: of exact actions, with one codec allowed (zfp at the rate that suits each tensor), and with all of
them, of which each tensor has its own. Who may use one codec uses it for as many tensors as its budget of errors allows. Overhead is predicted time over that of keeping everything."""
import argparse
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile

SINGLE = ["fp16", "bf16", "int8", "zfp"]


def measured(path, name, folder):
    """A profile with nothing but the errors of the one at `path`, so that times are the device's; None where nobody measured."""
    if not path or not path.exists():
        return None
    own = folder / f"{name}.json"
    own.write_text(json.dumps({"version": 1, "errors": json.loads(path.read_text())["errors"]}))
    return own


def command(options, device, network, precision, flags, profile):
    """The compiler's, for a shipped profile or, where `device` is None, this machine as it was calibrated."""
    model, batch, budget = network
    words = [options.sluicec, model, f"--batch={batch}", "--init=kaiming", f"--target={'host' if device in ('host', None) else 'cuda'}",
             f"--precision={precision}", "--dropout=off", f"--memory-budget={budget}", f"--host-budget={getattr(options, 'home', 'unlimited')}", *flags]
    return words + ([f"--device={device}"] if device else []) + ([f"--profile={profile}"] if profile else [])


def planned(options, device, network, precision, flags, profile):
    """Overhead in percent, total error, and how many tensors have each lossy codec; None where no plan fits."""
    model = network[0]
    run = subprocess.run(command(options, device, network, precision, ["--emit=planned", *flags], profile), capture_output=True, text=True)
    if run.returncode == 3:
        return None
    if run.returncode:
        raise SystemExit(f"{model}: {run.stderr}")
    plan = run.stdout[run.stdout.index("#train.plan<"):]
    number = lambda key: float((re.search(rf"\b{key} = ([-+0-9.Ee]+)", plan.split("decisions [")[0]) or [0, 0])[1])
    error = re.search(r"#train\.lossy<allowed = [-+0-9.Ee]+ : f64, error = ([-+0-9.Ee]+)", run.stdout)
    codecs = {}
    for codec in re.findall(r'action = (?:compress|offload), codec = "([^"]+)"', plan):
        short = codec.replace("mask+", "")
        codecs[short] = codecs.get(short, 0) + 1
    return 100 * (number("seconds") / number("keep_seconds") - 1), float(error[1]) if error else 0, codecs, 1e3 * number("keep_seconds")


def cell(plan):
    return f"{plan[0]:.2f} % ({plan[1]:.1e})" if plan else "no plan"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sluicec", default="build/bin/sluicec")
    parser.add_argument("--errors", type=pathlib.Path)
    parser.add_argument("--devices", default="v100-pcie,titan-x,host")
    parser.add_argument("--trials", type=int, help="of every search; otherwise by the number of ops")
    parser.add_argument("--budget", default="25%act")
    parser.add_argument("--limits", default="3e-3,1e-2")
    parser.add_argument("--precisions", default="fp32")
    parser.add_argument("networks", nargs="+")
    options = parser.parse_args()
    mixed = "--strategy=mixed,takeover=0" + (f",trials={options.trials}" if options.trials else "")
    print("| network | device | precision | errors | error budget | keep | exact | " + " | ".join(SINGLE) + " | a codec a tensor | of the best single one | its codecs |")
    print("|---|---|---|---|---|---|---|" + "---|" * (len(SINGLE) + 3))
    with tempfile.TemporaryDirectory() as work:
        for words, device, precision in itertools.product(options.networks, options.devices.split(","), options.precisions.split(",")):
            name, rest = words.split("=")
            model, batch, budget = (rest.split(":") + [options.budget])[:3]
            profile = measured(options.errors and options.errors / f"{name}.json", name, pathlib.Path(work))
            plan = lambda *flags: planned(options, device, (model, batch, budget), precision, flags, profile)
            exact = plan(mixed)
            for limit in options.limits.split(","):
                bound = f"--error-budget={limit}"
                plans = {codec: plan(mixed, f"--allow-lossy={codec}", bound) for codec in SINGLE}
                own = plan(mixed, bound)
                best = min((one[0] for one in plans.values() if one), default=None)
                gain = f"{100 * (1 - own[0] / best):.0f} % less" if own and best and best > 0 else "-"
                codecs = ", ".join(f"{count} {codec}" for codec, count in sorted(own[2].items())) if own else ""
                keep = f"{own[3]:.1f} ms" if own else "-"
                print(f"| {name}, batch {batch}, {budget} | {device} | {precision} | {'measured' if profile else 'usual'} | {limit} | {keep} | {cell(exact)} | "
                      + " | ".join(cell(plans[codec]) for codec in SINGLE) + f" | {cell(own)} | {gain} | {codecs} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
