#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills, crowds, full disks and signals against one compiled program: robustness.py --sluicec build/bin/sluicec [--kills 1000] [--pairs 200].
Prints the tables of docs/results/robustness.md and ends with status 1 where anything was lost or an exit status is not the contract's. The model is
test/models/tiny/mlp. Mounting small file systems takes root; without it those rows say so."""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from checkpoint_files import losses_of, step_of

root = pathlib.Path(__file__).resolve().parents[2]
model, data = root / "test/models/tiny/mlp/model.onnx", root / "test/models/tiny/mlp/data"
WHOLE = ["checkpoint.safetensors", "recipe.toml"]  # what a run leaves
problems = []


def expect(condition, *what):
    if not condition:
        problems.append(" ".join(str(word) for word in what))
        print("PROBLEM:", problems[-1], flush=True)


def whole_step(path):
    try:
        return step_of(path)
    except Exception as error:  # noqa: BLE001, whatever is wrong with it, it is not whole
        expect(False, path, error)
        return -1


class Bench:
    def __init__(self, options):
        self.options, self.folder = options, pathlib.Path(tempfile.mkdtemp(prefix="sluice-robustness-"))
        self.random = random.Random(options.seed)
        self.program = self.folder / "mlp"
        subprocess.run([options.sluicec, model, "--batch=8", "-o", self.program], check=True)

    def start(self, *flags, where=None, program=None, **more):
        return subprocess.Popen([program or self.program, "--data", data, "--lr", "0.01", "--shuffle", "--seed", "3", *flags], cwd=where or self.folder,
                                stdout=subprocess.DEVNULL if "stdout" not in more else more.pop("stdout"), stderr=subprocess.PIPE, text=True, **more)

    def run(self, *flags, **more):
        process = self.start(*flags, **more)
        error = process.communicate(timeout=120)[1]
        return process.returncode, error

    def reference(self, steps):
        folder = self.folder / f"reference-{steps}"
        if not folder.exists():
            status, error = self.run("--steps", str(steps), "--checkpoint", folder, "--log", self.folder / f"reference-{steps}.jsonl")
            expect(status == 0, "reference", status, error)
        return (folder / "checkpoint.safetensors").read_bytes()

    def kills(self):
        """Each run goes on where the one before was killed; the last one must end with the bits of one that was never killed."""
        folder = self.folder / "kills"
        folder.mkdir()
        file, log = folder / "checkpoint.safetensors", self.folder / "kills.jsonl"
        begin = time.monotonic()
        startup = 0.0
        for i in range(3):
            self.run("--steps", "1", "--checkpoint", self.folder / "warm", "--force")
            startup = (time.monotonic() - begin) / (i + 1)
        last, partials, saves, advanced, losses = 0, 0, 0, 0, {}
        for trial in range(self.options.kills):
            resume = ["--resume", folder] if file.exists() else []
            before = os.stat(file).st_mtime_ns if file.exists() else 0
            process = self.start("--steps", "1000000000", "--checkpoint", folder, "--checkpoint-every", "1", "--log", log, *resume)
            time.sleep(self.random.uniform(0.2, 1.6) * startup)
            process.kill()
            process.communicate()
            step = whole_step(file) or 0
            for number, loss in losses_of(log).items():
                expect(losses.setdefault(number, loss) == loss, "kill", trial, ": step", number, "had another loss before")
            expect(step >= last, "kill", trial, "lost steps: the checkpoint went from", last, "to", step)
            if log.exists() and (lines := [line for line in log.read_text().split("\n")[:-1] if '"event":"step"' in line]) and before != (
                    os.stat(file).st_mtime_ns if file.exists() else 0):
                logged = json.loads(lines[-1])["step"]
                expect(step >= logged - 2, "kill", trial, ": step", logged, "was logged, the checkpoint is of", step)
                saves += 1
            advanced += step > last
            last = step
            partials += len(list(folder.glob(".sluice-*.partial")))
            expect(len(list(folder.glob(".sluice-*.partial"))) <= 1, "kill", trial, ": files aside pile up")
        status, error = self.run("--steps", str(last + 3), "--resume", folder, "--checkpoint", folder)
        expect(status == 0, "going on after all kills", status, error)
        expect(sorted(os.listdir(folder)) == WHOLE, "left behind", os.listdir(folder))
        expect(file.read_bytes() == self.reference(last + 3), "the bits are not those of a run that was never killed")
        whole = losses_of(self.folder / f"reference-{last + 3}.jsonl")
        expect(all(whole[number] == loss for number, loss in losses.items()), "the losses are not those of a run that was never killed")
        return [f"| SIGKILL, {self.options.kills} times, at random moments of runs that save after every step | {saves} in training, {partials} while a checkpoint was being "
                f"written | the checkpoint is whole each time and never older than the last step but two in the log; {len(losses):,} losses and the checkpoint at step {last + 3} are, bit for bit, those of a run that "
                "was never killed; nothing else is left |"]

    def pairs(self):
        """Two programs that start at about the same time on one folder; every third second one is wrong in another flag."""
        counts = {"both trained, one after the other": 0, "one refused": 0, "second wrong in another flag": 0}
        steps = 60
        whole = self.reference(steps)
        for trial in range(self.options.pairs):
            folder = self.folder / f"pair-{trial}"
            common = ["--steps", str(steps), "--checkpoint", folder, "--checkpoint-every", "1"]
            wrong = trial % 3 == 2
            processes = [self.start(*common)]
            time.sleep(self.random.uniform(0, 0.1))
            processes.append(self.start(*common, *(["--log", self.folder / "nowhere/log"] if wrong else [])))
            errors = [process.communicate()[1] for process in processes]
            statuses = [process.returncode for process in processes]
            expect(0 in statuses and set(statuses) <= {0, 1}, "pair", trial, statuses, errors)
            for status, error in zip(statuses, errors):
                expect(status == 0 or "writes its checkpoints to" in error or (wrong and "nowhere" in error), "pair", trial, status, error)
            expect(folder.joinpath("checkpoint.safetensors").read_bytes() == whole, "pair", trial, ": another checkpoint than of one run alone")
            expect(sorted(os.listdir(folder)) == WHOLE, "pair", trial, "left", os.listdir(folder))
            counts["second wrong in another flag" if wrong else "one refused" if 1 in statuses else "both trained, one after the other"] += 1
            shutil.rmtree(folder)
        return [f"| {self.options.pairs} pairs of programs on one checkpoint folder | {', '.join(f'{key}: {value}' for key, value in counts.items())} | a program that trains ends with 0 "
                "and with the checkpoint of one alone, the other one with 1 and the process and machine of the first |"]

    def mounted(self, options, use):
        folder = self.folder / "mount"
        folder.mkdir(exist_ok=True)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True).returncode:
            return "not run: mounting is not allowed here"
        try:
            return use(folder)
        finally:
            subprocess.run(["umount", folder], check=True)

    def disks(self):
        size = len(self.reference(60))
        rows = []

        def full(folder):
            status, error = self.run("--steps", "4", "--checkpoint", folder / "c")
            expect(status == 0, "small disk", status, error)
            former = (folder / "c/checkpoint.safetensors").read_bytes()
            fill(folder / "filler")
            status, error = self.run("--steps", "9", "--resume", folder / "c", "--checkpoint", folder / "c", "--checkpoint-every", "1")
            expect(status == 1 and "No space left on device" in error, "full disk", status, error)
            expect((folder / "c/checkpoint.safetensors").read_bytes() == former, "full disk: the checkpoint changed")
            expect(sorted(os.listdir(folder / "c")) == WHOLE, "full disk left", os.listdir(folder / "c"))
            os.truncate(folder / "filler", os.path.getsize(folder / "filler") - 4096)
            status, error = self.run("--steps", "1000000", "--log", folder / "log", "--checkpoint", self.folder / "saved")
            expect(status == 1 and "No space left on device" in error and whole_step(self.folder / "saved/checkpoint.safetensors"), "full log", status, error)
            (folder / "filler").unlink()
            status, error = self.run("--steps", "9", "--resume", folder / "c", "--checkpoint", folder / "c")
            expect(status == 0, "once there is room", status, error)
            return "1, names the file; the former checkpoint byte for byte, nothing beside it; a full log saves the steps that were done; with room again: goes on"

        def fill(path):
            with open(path, "wb", buffering=0) as out:
                try:
                    while True:
                        out.write(b"x" * 4096)
                except OSError:
                    return

        def read_only(folder):
            self.run("--steps", "4", "--checkpoint", folder / "c")
            subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
            status, error = self.run("--steps", "9", "--resume", folder / "c", "--checkpoint", folder / "c")
            expect(status == 1 and "Read-only file system" in error, "read-only", status, error)
            status, error = self.run("--steps", "5", "--resume", folder / "c")
            expect(status == 0, "resuming from a read-only disk", status, error)
            return "1 before anything is trained; going on from it to another place: 0"

        rows.append(f"| tmpfs of {4 * size // 1024 + 24} KiB, filled | {self.mounted(f'size={4 * size + 24576}', full)} |")
        rows.append(f"| tmpfs, remounted read-only | {self.mounted('size=4m', read_only)} |")
        library = next(root.glob("build*/**/libfaulty_files.so"), None)
        if library:
            statuses = set()
            for call in range(1, 30):
                shutil.rmtree(self.folder / "quota", ignore_errors=True)
                self.run("--steps", "4", "--checkpoint", self.folder / "quota")
                former = whole_step(self.folder / "quota/checkpoint.safetensors")
                status, error = self.run("--steps", "6", "--resume", "quota", "--checkpoint", "quota", "--checkpoint-every", "1",
                                         env=dict(os.environ, LD_PRELOAD=str(library), FAULT=f"pwrite:{call}:EDQUOT"))
                statuses.add(status)
                expect(status == 0 or (status == 1 and "Disk quota exceeded" in error), "quota", call, status, error)
                expect((whole_step(self.folder / "quota/checkpoint.safetensors") or 0) >= former, "quota", call, "lost the checkpoint")
            rows.append(f"| quota: each of the first 29 writes fails once (preloaded library) | {' or '.join(map(str, sorted(statuses)))}, the checkpoint whole each time |")
        for what, flags in (("--plan", ["--plan"]), ("--help", ["--help"]), ("a run", ["--steps", "3"]), ("--log /dev/full", ["--steps", "3", "--log", "/dev/full"])):
            status = subprocess.run([self.program, *([] if len(flags) == 1 else ["--data", data]), *flags], cwd=self.folder, stderr=subprocess.DEVNULL,
                                    stdout=open("/dev/full" if "--log" not in flags else "/dev/null", "w")).returncode
            expect(status == 1, "/dev/full", what, status)
            rows.append(f"| {what}{'' if '--log' in flags else ' > /dev/full'} | {status} |")
        return rows

    def signals(self):
        rows = {}
        ending = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGXCPU}
        going_on = {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH, signal.SIGXFSZ}
        for number in sorted(signal.valid_signals()):
            if number in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
                continue
            folder, log = self.folder / f"signal-{number:d}", self.folder / f"signal-{number:d}.jsonl"
            process = self.start("--steps", "1000000000", "--checkpoint", folder, "--checkpoint-every", "1000", "--log", log, restore_signals=True)
            while not folder.joinpath("checkpoint.safetensors").exists() and process.poll() is None:
                pass
            process.send_signal(number)
            if number in going_on:
                lines = log.stat().st_size
                while log.stat().st_size < lines + 1000 and process.poll() is None:
                    pass
                expect(process.poll() is None, "signal", number, "ended the run")
                process.terminate()
            error = process.communicate()[1]
            step = whole_step(folder / "checkpoint.safetensors")
            events = [json.loads(line) for line in log.read_text().split("\n")[:-1]]
            if number in ending | going_on:
                expect(process.returncode == -(signal.SIGTERM if number in going_on else number), "signal", number, process.returncode, error)
                expect(step == max(event.get("step", 0) for event in events), "signal", number, ": the checkpoint is of step", step)
                expect(sorted(os.listdir(folder)) == WHOLE, "signal", number, "left", os.listdir(folder))
            else:
                expect(process.returncode == -number, "signal", number, process.returncode, error)
                expect(step and step % 1000 == 0, "signal", number, ": the checkpoint is of step", step)
            kind = "goes on" if number in going_on else "ends by it, checkpoint of the last step" if number in ending else "ends by it at once, the last checkpoint stays"
            rows.setdefault(kind, []).append(signal.Signals(number).name[3:] if number in signal.Signals.__members__.values() else str(int(number)))
        return [f"| {', '.join(names)} | {kind} |" for kind, names in rows.items()]

    def data(self):
        """What is wrong with data ends a run in one line that names the file, before a checkpoint of it is touched; what a sample alone can have is skipped where
        that is asked for."""
        pictures, images, program = root / "test/unit/runtime/images", self.folder / "images", self.folder / "vgg"
        subprocess.run([self.options.sluicec, root / "test/models/tiny/vgg/model.onnx", "--batch=4", "-o", program], check=True)
        for label in range(2):
            for n in range(4):
                (images / f"class{label}").mkdir(parents=True, exist_ok=True)
                shutil.copy(pictures / ("colours.jpg", "palette.png")[n % 2], images / f"class{label}/{n}{('.jpg', '.png')[n % 2]}")
        arrays = shutil.copytree(data, self.folder / "arrays")
        bad, empty, target = images / "class1/2.jpg", images / "class2", arrays / "target.npy"
        whole, labels, rows = bad.read_bytes(), target.read_bytes(), []

        def case(what, break_it, mend, where, words, skippable, resumed=False, of=None):
            source = str(arrays) if of is None else f"imagefolder:{images}"
            command = [of or self.program, "--data", source, "--lr", "0.01", "--steps", "6"]
            folder = self.folder / "faults"
            shutil.rmtree(folder, ignore_errors=True)
            if resumed:
                expect(subprocess.run([*command[:-1], "3", "--checkpoint", folder, "--quiet"]).returncode == 0, what, "before")
                former = (folder / "checkpoint.safetensors").read_bytes()
            break_it()
            run = subprocess.run([*command, "--checkpoint", folder, *(["--resume", folder] if resumed else [])], capture_output=True, text=True)
            expect(run.returncode == 1 and run.stderr.count("\n") == 1 and str(where) in run.stderr and words in run.stderr, what, run.returncode, run.stderr)
            if resumed:
                expect((folder / "checkpoint.safetensors").read_bytes() == former, what, ": the checkpoint changed")
            skipped = subprocess.run([*command, "--on-bad-data=skip"], capture_output=True, text=True) if skippable else None
            expect(not skippable or (skipped.returncode == 0 and "skipped: " in skipped.stderr), what, skipped and skipped.stderr)
            mend()
            shown = run.stderr.strip().split(": error: ")[1].replace(str(self.folder) + "/", "")
            rows.append(f"| {what} | {shown} | {'goes on' if skippable else 'the same'} |")

        for what, content, words in (("an image that is cut short", whole[:len(whole) // 2], "damaged"), ("a text with the name of an image", b"not an image", "begin neither"),
                                     ("an empty file", b"", "0 bytes")):
            case(what, lambda content=content: bad.write_bytes(content), lambda: bad.write_bytes(whole), bad, words, True, of=program)
        case("a class without images", empty.mkdir, empty.rmdir, empty, "has no .jpg", True, of=program)
        many = [images / f"more{n}" for n in range(200)]
        case("more classes than the model has", lambda: [shutil.copytree(images / "class0", folder) for folder in many], lambda: [shutil.rmtree(folder) for folder in many], images,
             "classes, the model tells", False, of=program)
        case("a label out of range", lambda: target.write_bytes(labels[:-8] + struct.pack("<q", 99)), lambda: target.write_bytes(labels), target, "holds 99", True)
        case("an array that is cut short", lambda: target.write_bytes(labels[:-8]), lambda: target.write_bytes(labels), target, "", False)
        case("another label when a run goes on", lambda: target.write_bytes(labels[:-8] + struct.pack("<q", 1 - struct.unpack("<q", labels[-8:])[0] % 2)),
             lambda: target.write_bytes(labels), arrays, "was trained on", False, resumed=True)
        return rows

    def threads(self):
        """Every thread that a program of four kernel threads starts cannot be had once; libgomp's are among them."""
        library, statuses = next(root.glob("build*/**/libfaulty_files.so"), None), {}
        fired, four = self.folder / "fired", self.folder / "four"
        if library:
            subprocess.run([self.options.sluicec, model, "--batch=8", "--threads=4", "-o", four], check=True)
        for call in range(1, 100) if library else []:
            fired.unlink(missing_ok=True)
            try:
                status, error = self.run("--steps", "2", program=four, env=dict(os.environ, LD_PRELOAD=str(library), FAULT=f"pthread_create:{call}:EAGAIN"))
            except subprocess.TimeoutExpired:
                status, error = "a hang", ""
            if not fired.exists():
                break
            statuses[status] = statuses.get(status, 0) + 1
            expect(status in (0, 3) and (status == 0 or "error: " in error), "thread", call, status, error)
        return [f"| a thread that cannot be had, each of {sum(statuses.values())} once (preloaded library) | {', '.join(f'status {key}: {value}' for key, value in statuses.items())} | one line, no hang |"]

    def compiler(self):
        """Signals to the compiler at random moments: no output, no folder, no compiler of C++ is left."""
        folder = self.folder / "compiled"
        folder.mkdir()
        begin = time.monotonic()
        subprocess.run([self.options.sluicec, model, "--batch=8", "-o", folder / "p"], check=True)
        takes, ended = time.monotonic() - begin, 0
        for name in os.listdir(folder):
            (folder / name).unlink()
        for trial in range(self.options.compilations):
            process = subprocess.Popen([self.options.sluicec, model, "--batch=8", "-o", folder / "p"], stderr=subprocess.DEVNULL, env=dict(os.environ, CCACHE_DISABLE="1"))
            time.sleep(self.random.uniform(0, takes))
            number = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL)[trial % 4]
            process.send_signal(number)
            status = process.wait()
            expect(status in (0, -number), "compilation", trial, status)
            ended += status != 0
            left = [name for name in os.listdir(folder) if not name.startswith(".sluicec-") or number != signal.SIGKILL]
            expect(status == 0 or left == [], "compilation", trial, "left", left)
            for name in os.listdir(folder):
                if not name.startswith(".sluicec-"):
                    (folder / name).unlink()
        subprocess.run([self.options.sluicec, model, "--batch=8", "--emit=forward", "-o", folder / "level.mlir"], check=True)
        expect(os.listdir(folder) == ["level.mlir"], "killed compilations left", os.listdir(folder))
        return [f"| sluicec: SIGTERM, SIGINT, SIGHUP and SIGKILL in turn, {self.options.compilations} times at random moments | {ended} before its end | all or nothing of the program's files; "
                "folders aside only after SIGKILL, and removed by the next compilation |"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluicec", default=str(root / "build/bin/sluicec"))
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--compilations", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=["kills", "pairs", "threads", "compiler", "disks", "data", "signals"], help="one of the rows")
    bench = Bench(parser.parse_args())
    try:
        for title, part in (("| what | how it met | outcome |\n|---|---|---|", [bench.kills, bench.pairs, bench.threads, bench.compiler]), ("| disk | exit status and what is left |\n|---|---|", [bench.disks]),
                            ("| data | the line (status 1) | with `--on-bad-data=skip` |\n|---|---|---|", [bench.data]), ("| signal | training |\n|---|---|", [bench.signals])):
            part = [rows for rows in part if bench.options.only in (None, rows.__name__)]
            if part:
                print(title)
            for rows in part:
                print("\n".join(rows()), flush=True)
            print()
    finally:
        shutil.rmtree(bench.folder, ignore_errors=True)
    print(f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
