# SPDX-License-Identifier: Apache-2.0
"""Starts a program as several ranks, sends one of them a signal once some steps are logged, and checks how all of them end.

    end_rank.py SIGNAL RANK LOG STATUS COMMAND...

STATUS is what mpirun must end with: 0, "failed" for anything else, or "any". No process of the command may be left."""
import os
import signal
import subprocess
import sys


def ranks_of(parent):
    """Of the processes below mpirun: their numbers by rank."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                environment = dict(entry.partition(b"=")[::2] for entry in file.read().split(b"\0"))
            with open(f"/proc/{pid}/stat") as file:
                above = int(file.read().rsplit(")", 1)[1].split()[1])
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if above == parent and b"OMPI_COMM_WORLD_RANK" in environment:
            found[int(environment[b"OMPI_COMM_WORLD_RANK"])] = int(pid)
    return found


def is_running(pid):
    """Not so once it has ended, whether somebody has asked for its status or not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def steps_of(log):
    try:
        with open(log) as file:
            return sum('"event":"step"' in line for line in file)
    except FileNotFoundError:
        return 0


def main():
    name, rank, log, status, command = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5:]
    process = subprocess.Popen(command)
    while steps_of(log) < 3:
        if process.poll() is not None:
            sys.exit(f"ended with {process.returncode} before it was told to")
    ranks = ranks_of(process.pid)
    os.kill(ranks[rank], getattr(signal, name))
    code = process.wait()
    left = [pid for pid in ranks.values() if is_running(pid)]
    if left:
        sys.exit(f"left behind: {left}")
    if status != "any" and (code == 0) != (status == "0"):
        sys.exit(f"ended with {code}, not {status}")


main()
