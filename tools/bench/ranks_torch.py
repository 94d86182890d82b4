# SPDX-License-Identifier: Apache-2.0
"""ResNet-50 in PyTorch's DistributedDataParallel or FSDP over gloo, for ranks.py and hosts_steps.sh: one rank of several, on a core of its own.

    ranks_torch.py RANK RANKS STORE BATCH STEPS [SIDE [OPTIMIZER [fsdp]]]

STORE is a file, or "env" where MASTER_ADDR and MASTER_PORT say where the others are; images have SIDE (224) pixels a side. OPTIMIZER is sgd (with momentum)
or adam. With fsdp each residual block is sharded by fully_shard, then what is around them: parameters, gradients and states. Rank 0 prints a line of JSON: the fastest step in ms, the first one left out, and the bytes that the process had resident at most."""
import json
import os
import sys
import time

import torch
import torch.distributed
import torchvision
from torch.distributed.fsdp import fully_shard


def main():
    rank, ranks, store, batch, steps = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
    side = int(sys.argv[6]) if len(sys.argv) > 6 else 224
    adam, shards = sys.argv[7:8] == ["adam"], sys.argv[8:] == ["fsdp"]
    os.sched_setaffinity(0, {rank})
    torch.set_num_threads(1)
    torch.manual_seed(1)
    torch.distributed.init_process_group("gloo", init_method="env://" if store == "env" else f"file://{store}", rank=rank, world_size=ranks)
    model = torchvision.models.resnet50()
    if not shards:  # which takes contiguous weights alone; activations are channels-last either way
        model = model.to(memory_format=torch.channels_last)
    if shards:
        mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (ranks,))
        for layer in (model.layer1, model.layer2, model.layer3, model.layer4):
            for block in layer:
                fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
    trained = torch.nn.parallel.DistributedDataParallel(model) if ranks > 1 and not shards else model
    parameters = trained.parameters()
    optimizer = torch.optim.Adam(parameters, 0.001) if adam else torch.optim.SGD(parameters, 0.001, momentum=0.9)
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
