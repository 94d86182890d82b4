#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the papers' networks, as ONNX files, under the papers' strategies, and writes what their placed programs need and are predicted to take
into FOLDER/17-compiled-networks.md. Standard library only.

    tools/bench/reproduction_models.py docs/reproduction      needs build/bin/sluicec"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# network, batch and device of its paper, strategies that act without a budget, strategies that have one, budgets
VDNN = ["vdnn-all", "vdnn-conv", "vdnnpp,mode=1,synchronous=1", "vdnnpp,mode=1"]
CASES = [("alexnet", 128, "gtx-1080ti", VDNN, ["dynprog"], ["60%act"]),
         ("alexnet", 256, "gtx-1080ti", VDNN, ["dynprog"], ["60%act"]),
         ("vgg116", 32, "gtx-1080ti", [*VDNN, "vdnn-aconv"], ["dynprog"], ["11GiB"]),
         ("vgg191", 32, "gtx-1080ti", [*VDNN, "vdnn-aconv"], ["dynprog"], ["11GiB"]),
         ("inception_v3", 32, "v100-pcie", VDNN, ["dynprog", "greedy", "rotor"], ["70%act", "40%act"]),
         ("resnet256", 24, "titan-x", [*VDNN, "freelunch,masks=0", "freelunch,masks=0,hybrid=1"], ["dynprog", "chen"], ["40%act"])]
HEAD = """# Experiment 17: the papers' networks, compiled

The papers' networks that are neither VGG-16 nor one of torchvision's ResNets, as ONNX files (`test/models/papers`, by `test/models/make_papers.py`)
at the papers' batches, compiled down to placed programs for `--target=cuda`. The other pages plan tables of layers; these are what a program would
run: every op with its workspace, gradients and updates, all of it at offsets in one arena, checked. Times are predictions by the roofline of the
paper's device; nothing is fitted, so they compare with each other and not with the papers' milliseconds, which page 8 has with calibrated kernels.
Strategies without a budget are as published; the others have the one that is named. `host`: what is moved out, each byte of which comes back.
ResNet-256 has no published definition; ours has bottlenecks 3, 8, 70 and 3.
"""


class Infeasible(Exception):
    pass


def compiled(name, batch, device, strategy, budget):
    """Bytes and seconds of the placed program."""
    lossy = ["--allow-lossy=zfp"] if strategy.startswith("freelunch") else []
    run = subprocess.run([ROOT / "build/bin/sluicec", ROOT / f"test/models/papers/{name}.onnx", f"--batch={batch}", "--init=kaiming",
                          "--limit=constant-bytes=4000000000", "--target=cuda", f"--device={device}", f"--strategy={strategy}",
                          *([f"--memory-budget={budget}"] if budget else []), *lossy, "--emit=placed"], capture_output=True, text=True)
    if run.returncode == 3:
        raise Infeasible(int(re.search(r"smallest feasible budget: (\d+)", run.stderr)[1]))
    if run.returncode:
        sys.exit(f"{name}, {strategy}: {run.stderr}")
    plan = run.stdout[run.stdout.index("#train.plan<"):]
    facts = {key: float(re.search(rf"\b{key} = ([-+0-9.Ee]+)", plan)[1]) for key in ("keep_arena", "seconds", "keep_seconds")}
    device, host = re.search(r"sched\.program @step device\((\d+)\)(?: host\((\d+)\))?", run.stdout).groups()
    return facts | {"arena": int(device), "host": int(host or 0)}


def plans(name, batch, device, free, bound, budgets):
    """Facts, or the smallest budget, by (strategy, budget)."""
    found = {}
    for key in [("keep", "")] + [(s, "") for s in free] + [(s, b) for b in budgets for s in bound]:
        try:
            found[key] = compiled(name, batch, device, *key)
        except Infeasible as smallest:
            found[key] = smallest.args[0]
    return found


def rows(found):
    keep = found["keep", ""]
    for (strategy, budget), facts in found.items():
        head = f"| {strategy} | {budget} | "
        if isinstance(facts, int):
            yield head + f"infeasible below {facts / 1e9:.2f} | | | | |"
            continue
        shares = (1 - facts["arena"] / keep["arena"], facts["seconds"] / keep["seconds"] - 1) if strategy != "keep" else None
        saved, over = (f"{share:.1%}" for share in shares) if shares else ("", "")
        yield (head + f"{facts['arena'] / 1e9:.2f} | {saved} | {facts['host'] / 1e9:.2f} | {facts['seconds'] * 1e3:.0f} | {over} |").replace("%", " %")


def verdicts(found):
    """What the papers say, beside it."""
    seconds = lambda case, strategy, budget="": found[case][strategy, budget]["seconds"]
    back = [(seconds(case, VDNN[2]) - seconds(case, VDNN[3])) / (seconds(case, VDNN[2]) - seconds(case, "keep"))
            for case in (("alexnet", 128), ("alexnet", 256), ("vgg116", 32), ("vgg191", 32))]
    gigabytes = lambda case, strategy: found[case][strategy, ""]["arena"] / 1e9
    swap = seconds(("resnet256", 24), VDNN[3])
    fast, hybrid = (swap / seconds(("resnet256", 24), f"freelunch,masks=0{more}") for more in ("", ",hybrid=1"))
    inception = {s: seconds(("inception_v3", 32), s, "40%act") / seconds(("inception_v3", 32), "keep") - 1 for s in ("dynprog", "greedy", "rotor")}
    return f"""
## Beside the papers

- vDNN++ (Figure 9, up to 60 %): of what vDNN's protocol costs over keep, its own takes back {min(back):.0%} to {max(back):.0%} on AlexNet and the deep VGGs.
- vDNN++ (Table IV, GPU of 11.81 GB): every mode but aconv fits; aconv needs {gigabytes(("vgg116", 32), "vdnn-aconv"):.2f} GB on VGG-116, with momentum, which page 8's 10.87 GB are without
  and fit, and {gigabytes(("vgg191", 32), "vdnn-aconv"):.2f} GB on VGG-191, out of memory in the paper as here.
- FreeLunch (Tables I and III on ResNet-256): {fast:.2f} and, as the hybrid, {hybrid:.2f} times as fast as asynchronous swapping; the paper has 1.13 for both.
- Beaumont et al. (Figure 3, measured link): rematerialization ahead of offloading; on Inception v3 at 40 % of the activations rotor costs {inception['rotor']:.1%},
  dynprog {inception['dynprog']:.1%}, greedy {inception['greedy']:.1%}.
""".replace("%", " %").replace("  %", " %")


def commit():
    def git(*words):
        return subprocess.run(["git", "-C", ROOT, "-c", "safe.directory=*", *words], capture_output=True, text=True)
    changed = git("diff", "--quiet", "HEAD", "--", "passes", "tools").returncode
    return (git("describe", "--always", "--exclude=*").stdout.strip() or "unknown") + (" and changes" if changed else "")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: reproduction_models.py FOLDER")
    page, found = HEAD, {}
    for case in CASES:
        name, batch, device = case[:3]
        found[name, batch] = plans(*case)
        page += f"\n## {name}, batch {batch}, {device}\n\n| strategy | budget | arena, GB | below keep | host, GB | predicted ms | over keep |\n"
        page += "|---|---|---|---|---|---|---|\n" + "\n".join(rows(found[name, batch])) + "\n"
        print(f"compiled {name}", flush=True)
    page += verdicts(found) + f"\nWritten by `tools/bench/reproduction_models.py docs/reproduction` at commit {commit()}.\n"
    (pathlib.Path(sys.argv[1]) / "17-compiled-networks.md").write_text(page)
    print(f"wrote {sys.argv[1]}/17-compiled-networks.md")


main()
