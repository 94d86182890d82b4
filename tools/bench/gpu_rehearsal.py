#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goes through the stage `first` of tools/gpu_check.sh as a lent machine would, without a GPU: programs run on the emulator.

    gpu_rehearsal.py PACK --work DIR [--build build] > docs/results/gpu/rehearsal.log

PACK is what `tools/gpu_check.sh pack -o PACK` wrote. Its small programs and the conformance set are built for the emulator; the smallest network
stands in for ResNet-50 and GPT-2, which the emulator would need days for. Every machine is bare: an empty home, the tools of TOOLS and nothing else in PATH (no
xz: Python unpacks), no network where this user may take it away, a made-up nvidia-smi, this Python with PyTorch's own CUDA libraries (and no device, so that the peers
fail). Tests of notes, which the emulator alone has, need a process each and are left out. The first machine is killed, the second is as lent, the others have time for what
processors compute in place of a GPU; each begins with what came back from the one before, results.tgz. What decides must be done in the 540 s of the second."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import time

root = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(root / "test/models"))
import emulated  # noqa: E402

TOOLS = """bash sh env tar gzip grep sed timeout cat cp mv rm mkdir cmp cut basename dirname sort head tail tr date nproc free lscpu sleep chmod ls
  wc mktemp true""".split()
LONG = {"SLUICE_STAGE_SECONDS": "1800"}
MACHINES = [{"KILLED": "20"}, {}, LONG, LONG]  # what each is like; KILLED: seconds until it is gone
STANDS_IN = {f"{network}_bf16_{plan}": program for network in ("resnet50", "gpt2", "gpt2_dropout") for plan, program in (("keep", "check_mlp"), ("60act", "check_mlp_planned"))}
LARGEST = 60 << 20  # what may travel: the pack and the files of the repository
DECIDES = re.compile(r"gpu_check: what decides is done after (\d+) s")
GPU = "#!/bin/sh\necho 'a made-up GPU'\n"


def say(text):
    print(f"rehearsal: {text}", flush=True)


def first_programs():
    listed = re.search(r"^first_programs=\((.*)\)$", (root / "tools/gpu_check.sh").read_text(), re.M)
    return ["check_mlp", *listed.group(1).split()]


def build(carried, folder):
    """The emulator's programs in place of the GPU's."""
    shutil.rmtree(carried / "bin", ignore_errors=True)
    for name in ["cuda_conformance", *first_programs()]:
        source = carried / "programs" / STANDS_IN.get(name, name)
        into = carried / "bin" / name
        if name == "cuda_conformance":
            into.mkdir(parents=True)
            shutil.copy(folder / "bin/cuda_emulated", into / name)
        elif source.is_dir():
            into.mkdir(parents=True)
            done = emulated.run([*emulated.compiler(folder), source / "program.cu", "-o", into / name, *emulated.libraries(folder)])
            if done.returncode:
                sys.exit(f"{name} cannot be built for the emulator: {done.stderr[-500:]}")
            for weights in source.glob("*.safetensors"):
                shutil.copy(weights, into / weights.name)
        else:
            say(f"{name} is not in the pack")
            continue
        subprocess.run(["strip", into / name], check=True)


def machine(work, number, carried, traits):
    """The exit status of the stage on a bare machine, None where it was killed, and what it said; what it left in OUT is brought back."""
    home = work / f"machine{number}"
    shutil.rmtree(home, ignore_errors=True)
    for folder in ("tools", "out", "tmp"):
        (home / folder).mkdir(parents=True)
    for tool in TOOLS:
        (home / "tools" / tool).symlink_to(shutil.which(tool))
    (home / "tools/nvidia-smi").write_text(GPU)
    (home / "tools/nvidia-smi").chmod(0o755)
    shutil.copytree(carried, home / "sluice_gpu_check")
    traits = dict(traits)
    killed = traits.pop("KILLED", None)
    environment = {"PATH": str(home / "tools"), "HOME": str(home), "TMPDIR": str(home / "tmp"), "OUT": str(home / "out"), "PYTHON": sys.executable,
                   "GTEST_FILTER": "-Notes.*", **traits}
    begin = time.monotonic()
    alone = ["unshare", "--net"] if subprocess.run(["unshare", "--net", "true"], stderr=subprocess.DEVNULL).returncode == 0 else []
    run = subprocess.Popen([*alone, "bash", "sluice_gpu_check/gpu_check.sh", "first"], cwd=home, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           start_new_session=True)
    try:
        words, _ = run.communicate(timeout=float(killed) if killed else 2000)
        status = run.returncode
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, 9)
        words, _ = run.communicate()
        status = None
    sys.stdout.write(words)
    say(f"machine {number} {'was killed' if status is None else f'ended with status {status}'} after {time.monotonic() - begin:.0f} s")
    back = home / "out/results.tgz"
    if back.exists():
        shutil.copy(back, carried / "results.tgz")
    shutil.rmtree(home)
    return status, words


def items(carried):
    with tarfile.open(carried / "results.tgz") as archive:
        return sorted(pathlib.Path(name).name for name in archive.getnames() if re.search(r"\.(jsonl|json|txt|failed)$", name) and ".log." not in name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pack", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, default=root / "build")
    options = parser.parse_args()
    files = sum((root / name).stat().st_size for name in emulated.run(["git", "-C", root, "ls-files"]).stdout.split("\n") if name)
    size, carried = options.pack.stat().st_size, options.work / "sluice_gpu_check"
    shutil.rmtree(carried, ignore_errors=True)
    options.work.mkdir(parents=True, exist_ok=True)
    with tarfile.open(options.pack) as archive:
        archive.extractall(options.work, filter="data")
    say(f"commit {(carried / 'commit').read_text().split()[0][:7]}, the pack has {size} bytes, the repository's files {files}: {size + files} of {LARGEST} that may travel")
    if size + files > LARGEST:
        sys.exit("rehearsal: the pack is too large to travel")
    build(carried, options.build.resolve())
    done, decided = set(), False
    for number, traits in enumerate(MACHINES, 1):
        say(f"machine {number}: {traits or 'as lent'}")
        status, words = machine(options.work.resolve(), number, carried, traits)
        decided = decided or traits == {} and DECIDES.search(words) is not None
        now = set(items(carried))
        if done - now:
            sys.exit(f"rehearsal: lost: {' '.join(sorted(done - now))}")
        say(f"{len(now)} items came back, {len(now - done)} of them new")
        done = now
    say(f"status {status}; items: {' '.join(sorted(done))}")
    failed = [item for item in done if item.endswith(".failed") and not item.startswith("peer_")]
    if not decided:
        sys.exit("rehearsal: what decides was not done in the time that a machine is lent for")
    if status not in (0, 1) or failed:
        sys.exit(f"rehearsal: did not end well: {' '.join(failed)}")


if __name__ == "__main__":
    main()
