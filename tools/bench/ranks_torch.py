# SPDX-License-Identifier: Apache-2.0
"""ResNet-50 in PyTorch's DistributedDataParallel over gloo, for ranks.py and hosts_steps.sh: one rank of several, on a core of its own.

    ranks_torch.py RANK RANKS STORE BATCH STEPS [SIDE]

STORE is a file, or "env" where MASTER_ADDR and MASTER_PORT say where the others are; images have SIDE (224) pixels a side. Rank 0 prints a line of JSON: the fastest step in ms, the first one left out, and the bytes that the process had resident at most."""
import json
import os
import sys
import time

import torch
import torch.distributed
import torchvision


def main():
    rank, ranks, store, batch, steps = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
    side = int(sys.argv[6]) if len(sys.argv) > 6 else 224
    os.sched_setaffinity(0, {rank})
    torch.set_num_threads(1)
    torch.manual_seed(1)
    torch.distributed.init_process_group("gloo", init_method="env://" if store == "env" else f"file://{store}", rank=rank, world_size=ranks)
    model = torchvision.models.resnet50().to(memory_format=torch.channels_last)
    trained = torch.nn.parallel.DistributedDataParallel(model) if ranks > 1 else model
    optimizer = torch.optim.SGD(trained.parameters(), 0.001, momentum=0.9)
    x = torch.randn(batch, 3, side, side).to(memory_format=torch.channels_last)
    target = torch.randint(1000, (batch,))
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(trained(x), target).backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
    with open("/proc/self/status") as status:
        resident = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
    if rank == 0:
        print(json.dumps({"ms": min(times[1:]) * 1e3, "resident": resident}))
    torch.distributed.destroy_process_group()


main()
