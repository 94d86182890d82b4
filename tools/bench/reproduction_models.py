#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the papers' networks, as ONNX files, under the papers' strategies, and writes what their placed programs need and are predicted to take
into FOLDER/17-compiled-networks.md. Standard library only.

    tools/bench/reproduction_models.py docs/reproduction      needs build/bin/sluicec"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# network, batch and device of its paper, strategies that act without a budget, strategies that have one, budgets, flags
VDNN = ["vdnn-all", "vdnn-conv", "vdnnpp,mode=1,synchronous=1", "vdnnpp,mode=1"]
FREELUNCH = ["freelunch,rate=8", "freelunch,rate=8,stay=1", "freelunch,rate=8,stay=1,hybrid=1", "freelunch,rate=4"]
CASES = [("alexnet", 128, "gtx-1080ti", VDNN, ["dynprog"], ["60%act"]),
         ("alexnet", 256, "gtx-1080ti", VDNN, ["dynprog"], ["60%act"]),
         ("vgg116", 32, "gtx-1080ti", [*VDNN, "vdnn-aconv"], ["dynprog"], ["11GiB"]),
         ("vgg191", 32, "gtx-1080ti", [*VDNN, "vdnn-aconv"], ["dynprog"], ["11GiB"]),
         ("inception_v3", 32, "v100-pcie", VDNN, ["dynprog", "greedy", "rotor"], ["70%act", "40%act"]),
         ("resnet256", 24, "titan-x", [*VDNN, "freelunch,masks=0", "freelunch,masks=0,hybrid=1", "freelunch"], ["dynprog", "chen"], ["40%act"]),
         ("vgg16", 24, "titan-x", [*VDNN[2:], "freelunch,rate=8,masks=0", "freelunch,rate=8,masks=0,hybrid=1", *FREELUNCH], ["mixed"], ["65%"],
          "--workspace-limit=64MiB")]
HEAD = """# Experiment 17: the papers' networks, compiled

The papers' networks, but for torchvision's ResNets, as ONNX files (`test/models/papers`, by `test/models/make_papers.py`)
at the papers' batches, compiled down to placed programs for `--target=cuda`. The other pages plan tables of layers; these are what a program would
run: every op with its workspace, gradients and updates, all of it at offsets in one arena, checked. Times are predictions by the roofline of the
paper's device; nothing is fitted, so they compare with each other and not with the papers' milliseconds, which page 8 has with calibrated kernels.
Strategies without a budget are as published; the others have the one that is named. `host`: what is moved out, each byte of which comes back.
ResNet-256 has no published definition; ours has bottlenecks 3, 8, 70 and 3.
"""


class Infeasible(Exception):
    pass


def compiled(name, batch, device, strategy, budget, *flags):
    """Bytes and seconds of the placed program."""
    lossy = ["--allow-lossy=zfp"] if strategy.startswith("freelunch") else []
    run = subprocess.run([ROOT / "build/bin/sluicec", ROOT / f"test/models/papers/{name}.onnx", f"--batch={batch}", "--init=kaiming",
                          "--limit=constant-bytes=4000000000", "--target=cuda", f"--device={device}", f"--strategy={strategy}",
                          *([f"--memory-budget={budget}", "--host-budget=unlimited"] if budget else []), *lossy, *flags, "--emit=placed"], capture_output=True, text=True)
    if run.returncode == 3:
        raise Infeasible(int(re.search(r"smallest feasible budget: (\d+)", run.stderr)[1]))
    if run.returncode:
        sys.exit(f"{name}, {strategy}: {run.stderr}")
    plan = run.stdout[run.stdout.index("#train.plan<"):]
    facts = {key: float(re.search(rf"\b{key} = ([-+0-9.Ee]+)", plan)[1]) for key in ("keep_arena", "seconds", "keep_seconds")}
    device, host = re.search(r"sched\.program @step device\((\d+)\)(?: host\((\d+)\))?", run.stdout).groups()
    return facts | {"arena": int(device), "host": int(host or 0)}


def plans(name, batch, device, free, bound, budgets, *flags):
    """Facts, or the smallest budget, by (strategy, budget)."""
    found = {}
    for key in [("keep", "")] + [(s, "") for s in free] + [(s, b) for b in budgets for s in bound]:
        try:
            found[key] = compiled(name, batch, device, *key, *flags)
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


def over_keep(strategy, rate, contention, folder):
    """VGG-16's step over keep's, less one, with a codec of so many bytes a second."""
    name, batch, device, *_, flag = CASES[-1]
    profile = json.loads((ROOT / f"passes/profiles/{device}.json").read_text())
    profile["codecs"]["zfp"], profile["codec_contention"] = rate, contention
    path = folder / "profile.json"
    path.write_text(json.dumps(profile))
    facts = compiled(name, batch, path, strategy, "", flag)
    return facts["seconds"] / facts["keep_seconds"] - 1


def rate_for_a_tenth(strategy, contention, folder):
    """GB/s of the slowest codec with which it is at most 0.1, to 2 %."""
    low, high = 1e9, 1e12
    if over_keep(strategy, high, contention, folder) > 0.1:
        return "none"
    while high / low > 1.02:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if over_keep(strategy, middle, contention, folder) > 0.1 else (low, middle)
    return f"{high / 1e9:.1f}"


def a_tenth_more():
    """Where FreeLunch's time on VGG-16 comes from, and what codec would do."""
    text = """
FreeLunch's time over keep, how much of it is that the codec's kernels occupy the device, and GB/s of the slowest codec with which it is at most a
tenth, where its kernels occupy the device and where they run beside others for nothing. The profile's estimate is 20 GB/s.

| strategy | over keep | contention | GB/s, occupying | GB/s, beside |
|---|---|---|---|---|
"""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for strategy in ["freelunch,rate=8,masks=0", *FREELUNCH[:3]]:
            over, alone = (over_keep(strategy, 20e9, contention, folder) for contention in (1, 0))
            rates = " | ".join(rate_for_a_tenth(strategy, contention, folder) for contention in (1, 0))
            text += f"| {strategy} | {over:.1%} | {over - alone:.1%} | {rates} |\n".replace("%", " %")
    return text


def verdicts(found):
    """What the papers say, beside it."""
    seconds = lambda case, strategy, budget="": found[case][strategy, budget]["seconds"]
    back = [(seconds(case, VDNN[2]) - seconds(case, VDNN[3])) / (seconds(case, VDNN[2]) - seconds(case, "keep"))
            for case in (("alexnet", 128), ("alexnet", 256), ("vgg116", 32), ("vgg191", 32))]
    gigabytes = lambda case, strategy: found[case][strategy, ""]["arena"] / 1e9
    over_swap = lambda case, strategy: f"{seconds(case, VDNN[3]) / seconds(case, strategy):.2f}"
    deep = [over_swap(("resnet256", 24), strategy) for strategy in ("freelunch,masks=0", "freelunch,masks=0,hybrid=1", "freelunch")]
    vgg = [over_swap(("vgg16", 24), strategy) for strategy in ("freelunch,rate=8,masks=0", "freelunch,rate=8,masks=0,hybrid=1", "freelunch,rate=8")]
    inception = {s: seconds(("inception_v3", 32), s, "40%act") / seconds(("inception_v3", 32), "keep") - 1 for s in ("dynprog", "greedy", "rotor")}
    return f"""
## Beside the papers

- vDNN++ (Figure 9, up to 60 %): of what vDNN's protocol costs over keep, its own takes back {min(back):.0%} to {max(back):.0%} on AlexNet and the deep VGGs.
  On these it has more memory for that than vDNN, which the paper's vDNN++ does not: {gigabytes(("vgg116", 32), VDNN[3]):.2f} for {gigabytes(("vgg116", 32), VDNN[2]):.2f} GB, {gigabytes(("vgg191", 32), VDNN[3]):.2f} for {gigabytes(("vgg191", 32), VDNN[2]):.2f}.
- vDNN++ (Table IV, GPU of 11.81 GB): every mode but aconv fits; aconv needs {gigabytes(("vgg116", 32), "vdnn-aconv"):.2f} GB on VGG-116, with momentum, which page 8's 10.87 GB are without
  and fit, and {gigabytes(("vgg191", 32), "vdnn-aconv"):.2f} GB on VGG-191, out of memory in the paper as here.
- FreeLunch (Tables I and III on ResNet-256): {deep[0]} and, as the hybrid, {deep[1]} times as fast as asynchronous swapping, with masks {deep[2]}; the paper
  has 1.13 for both. On VGG-16 {vgg[0]}, {vgg[1]} and {vgg[2]}; the paper has 1.32 and 1.17.
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
        page += f"\n## {', '.join([name, f'batch {batch}', device, *(f'`{flag}`' for flag in case[6:])])}\n\n| strategy | budget | arena, GB | below keep | host, GB | predicted ms | over keep |\n"
        page += "|---|---|---|---|---|---|---|\n" + "\n".join(rows(found[name, batch])) + "\n"
        print(f"compiled {name}", flush=True)
    page += a_tenth_more() + verdicts(found) + f"\nWritten by `tools/bench/reproduction_models.py docs/reproduction` at commit {commit()}.\n"
    (pathlib.Path(sys.argv[1]) / "17-compiled-networks.md").write_text(page)
    print(f"wrote {sys.argv[1]}/17-compiled-networks.md")


main()
