# SPDX-License-Identifier: Apache-2.0
"""Work that may hang, grow or die, for tools/bench/zoo.py: exports in a process of their own, commands within limits of time and memory."""
import multiprocessing
import os
import pathlib
import re
import resource
import subprocess
import tempfile
import time

CHILD_SECONDS = 900


def word_of(text):
    """The first lines of an error, and the cause that PyTorch's newer exporter writes last."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    lines = [line.strip() for line in text.split("Exception summary")[-1].splitlines() if line.strip()]
    return " / ".join(lines[:2] + lines[2:][-1:])[:400]


def in_child(work):
    """The word of what `work` raised, or None; its process may hang, grow or die."""
    receive, send = multiprocessing.get_context("fork").Pipe(False)

    def run():
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        try:
            work()
            send.send(None)
        except BaseException as error:  # noqa: BLE001, whatever it is, it is the verdict
            send.send(f"{type(error).__name__}: {word_of(str(error))}")
    child = multiprocessing.get_context("fork").Process(target=run)
    child.start()
    send.close()
    try:
        word = receive.recv() if receive.poll(CHILD_SECONDS) else f"no result within {CHILD_SECONDS} s"
    except EOFError:
        child.join()
        word = f"ended with status {child.exitcode}"
    if child.is_alive():
        child.kill() if word else child.join()
    child.join()
    return word


def resident(process):
    """Most bytes that a running process has had in memory; what wait4 says would begin with the bytes of the process that started it."""
    try:
        words = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", words)
    return int(found[1]) * 1024 if found else 0


def run_limited(options, command):
    """Status (negative: the signal; None: too slow), seconds, peak bytes as seen every 10 ms, standard error."""
    def limit():
        # The soft limit: sluicec gives the C++ compiler a limit of its own.
        resource.setrlimit(resource.RLIMIT_AS, (options.memory << 30, resource.getrlimit(resource.RLIMIT_AS)[1]))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    begin, peak = time.monotonic(), 0
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, preexec_fn=limit)
        while process.poll() is None and time.monotonic() - begin < options.seconds:
            peak = max(peak, resident(process))
            time.sleep(0.01)
        late = process.poll() is None
        if late:
            process.kill()
        status = process.wait()
        log.seek(0)
        return None if late else status, time.monotonic() - begin, peak, log.read()


def outcome(status):
    known = {None: "too slow", 0: "compiles", 1: "refused", 2: "refused", 3: "no plan"}
    return known.get(status) or f"crash (status {status})"
