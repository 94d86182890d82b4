# SPDX-License-Identifier: Apache-2.0
"""Starts a program as several ranks, sends one of them a signal once some steps are logged, and checks how all of them end.

    end_rank.py SIGNAL RANK LOG STATUS COMMAND...

STATUS is what mpirun must end with: 0, "failed" for anything else, or "any". No process of the command may be left."""
import os
import select
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


def handle_of(pid):
    """A file that can be read once the process has ended; none where it has already."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


def left_of(handles, seconds=10):
    """Those of the processes, by their handles, that have not ended by then."""
    left = [handle for handle in handles if handle is not None]
    while left:
        ended = select.select(left, [], [], seconds)[0]
        if not ended:
            break
        left = [handle for handle in left if handle not in ended]
    return len(left)


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
    handles = [handle_of(pid) for pid in ranks.values()]
    os.kill(ranks[rank], getattr(signal, name))
    code = process.wait()
    if left := left_of(handles):
        sys.exit(f"left behind: {left} processes")
    if status != "any" and (code == 0) != (status == "0"):
        sys.exit(f"ended with {code}, not {status}")


if __name__ == "__main__":
    main()
