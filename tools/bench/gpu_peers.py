#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One PyTorch peer of the cuda target on this GPU: training steps of a torchvision model, of gpt2, or of gpt2-dropout, on synthetic data that lie on the device.

    gpu_peers.py MODEL BATCH VARIANT      VARIANT: {eager,compile,max-autotune,checkpoint,save-on-cpu,budget-0.5}-{tf32,amp}
    gpu_peers.py links                    pinned copies, each direction alone and both together, in bytes a second

Prints one JSON object: milliseconds a step and samples/s (of STEPS steps between two synchronizations, after warming up), memory that the allocator gave out, reserved,
and that the driver counts. channels_last, cudnn.benchmark, fused SGD with momentum (gpt2: AdamW); tf32: fp32 tensors, TF32 products; amp: autocast to bf16. STEPS=N in the environment: so many, after as many."""
import json
import os
import sys
import time

import torch

WARM = STEPS = int(os.environ.get("STEPS", 50))


def blocks(model):
    """Children that can be recomputed one by one: residual, dense and transformer blocks, or what a plain network has between two poolings."""
    found = [child for name, child in model.named_modules()
             if type(child).__name__ in ("BasicBlock", "Bottleneck", "_DenseBlock", "EncoderBlock")]
    if not found:
        segments = [[]]
        for layer in model.features:
            segments[-1].append(layer)
            if isinstance(layer, torch.nn.MaxPool2d):
                segments.append([])
        found = [torch.nn.Sequential(*segment) for segment in segments if segment]
        model.features = torch.nn.Sequential(*found)
    return found


def checkpointed(model):
    from torch.utils.checkpoint import checkpoint
    for block in blocks(model):
        forward = block.forward
        block.forward = lambda x, forward=forward: checkpoint(forward, x, use_reentrant=False)
    return model


def links():
    """A plain loop of cudaMemcpyAsync, which is what copy_ is between pinned and device memory."""
    size, repeats = 256 << 20, 8
    host = [torch.empty(size, dtype=torch.uint8, pin_memory=True) for _ in range(2)]
    device = [torch.empty(size, dtype=torch.uint8, device="cuda") for _ in range(2)]
    streams = [torch.cuda.Stream() for _ in range(2)]

    def rate(to_host, to_device):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(repeats):
            with torch.cuda.stream(streams[0]):
                if to_host:
                    host[0].copy_(device[0], non_blocking=True)
            with torch.cuda.stream(streams[1]):
                if to_device:
                    device[1].copy_(host[1], non_blocking=True)
        torch.cuda.synchronize()
        return size * repeats * (to_host + to_device) / (time.perf_counter() - begin)

    rate(True, True)
    print(json.dumps({"d2h": rate(True, False), "h2d": rate(False, True), "duplex": rate(True, True), "torch": torch.__version__}))


def make(name, batch, device):
    """The model and a batch of it."""
    if name.startswith("gpt2"):
        from zoo_own import Decoder
        dropout = 0.1 if name == "gpt2-dropout" else 0.0
        return (Decoder(50257, 1024, width=768, heads=12, layers=12, dropout=dropout).to(device), *torch.randint(0, 50257, (2, batch, 1024), device=device))
    import torchvision
    model = getattr(torchvision.models, name)(weights=None, **({"memory_efficient": False} if name.startswith("densenet") else {}))
    return (model.to(device, memory_format=torch.channels_last), torch.randn(batch, 3, 224, 224, device=device).to(memory_format=torch.channels_last),
            torch.randint(0, 1000, (batch,), device=device))


def main():
    if sys.argv[1:] == ["links"]:
        return links()
    name, batch, variant = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    kind, precision = variant.rsplit("-", 1)
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    device = torch.device("cuda")
    torch.set_float32_matmul_precision("high")
    model, x, y = make(name, batch, device)
    model = model.train()
    if kind == "checkpoint":
        model = checkpointed(model)
    if kind.startswith("budget"):
        import torch._functorch.config as functorch
        functorch.activation_memory_budget = float(kind.split("-")[1])
        model = torch.compile(model)
    if kind in ("compile", "max-autotune"):
        model = torch.compile(model, mode=None if kind == "compile" else kind)
    if name.startswith("gpt2"):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4, fused=True)

    def loss_of(scores, classes):
        return torch.nn.functional.cross_entropy(scores.flatten(0, -2), classes.flatten())

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "amp"):
            if kind == "save-on-cpu":
                with torch.autograd.graph.save_on_cpu(pin_memory=True):
                    loss = loss_of(model(x), y)
            else:
                loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(WARM):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    begin = time.perf_counter()
    for _ in range(STEPS):
        loss = step()
    torch.cuda.synchronize()
    mean = (time.perf_counter() - begin) / STEPS
    free, total = torch.cuda.mem_get_info()
    print(json.dumps({"model": name, "batch": batch, "variant": variant, "step_ms": mean * 1e3, "samples_per_second": batch / mean,
                      "allocated_bytes": torch.cuda.max_memory_allocated(), "reserved_bytes": torch.cuda.max_memory_reserved(),
                      "driver_bytes": total - free, "loss": loss.item(), "torch": torch.__version__}))


if __name__ == "__main__":
    try:
        main()
    except Exception as error:  # of one variant: the others go on
        sys.exit(f"CUDA peer {' '.join(sys.argv[1:])}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
