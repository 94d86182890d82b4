# SPDX-License-Identifier: Apache-2.0
"""Starts a program as torchrun or srun does: several processes that nothing connects, which learn from the environment who they are.

    launch.py torchrun|slurm COUNT COMMAND...

Once one fails the others are asked to end, and killed if they have not after 10 s, which is an error here. Ends with the first status that is not 0."""
import os
import socket
import subprocess
import sys
import time

WORDS = {"torchrun": ("RANK", "WORLD_SIZE", "LOCAL_RANK"), "slurm": ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID")}


def main():
    launcher, count, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1] - 1  # the one behind it is free
    words = WORDS[launcher]
    processes = []
    for rank in range(count):
        told = dict(zip(words, map(str, (rank, count, rank))))
        processes.append(subprocess.Popen(command, env={**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), **told}))
    asked = None
    while any(process.poll() is None for process in processes):
        if asked is None and any(process.returncode for process in processes):
            asked = time.monotonic()
            for process in processes:
                process.terminate()
        if asked is not None and time.monotonic() - asked > 10:
            for process in processes:
                process.kill()
            sys.exit("some ranks went on for 10 s")
        time.sleep(0.01)
    sys.exit(next((process.returncode for process in processes if process.returncode), 0))


main()
