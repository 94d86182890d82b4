#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attention, layer normalization, softmax and gelu of the host runtime against PyTorch, side by side in one run.

    transformer_kernels.py [--rounds 5] [--threads 2] [--kernel-bench build/bin/kernel-bench]

Rounds alternate between kernel-bench and PyTorch; each prints the best of four calls or of as many as a tenth of a second holds, forward and backward; the table has the medians over rounds of
their sums and the ratio. PyTorch's side: scaled_dot_product_attention, layer_norm without its gradients of scale and bias, which are kernels of their
own in programs, softmax, gelu. Needs the Python environment of tools/setup.sh --references."""
import argparse
import statistics
import subprocess
import time

import torch
import torch.nn.functional as F

REPETITIONS, SECONDS = 4, 0.2  # at least, forward and backward together


def best(forward, inputs):
    """Milliseconds of forward and backward."""
    gradient, times, first = None, ([], []), time.perf_counter()
    while len(times[0]) < REPETITIONS or time.perf_counter() - first < SECONDS:
        start = time.perf_counter()
        y = forward()
        times[0].append(time.perf_counter() - start)
        gradient = torch.randn_like(y) if gradient is None else gradient
        start = time.perf_counter()
        torch.autograd.grad(y, inputs, gradient)
        times[1].append(time.perf_counter() - start)
    return [min(t) * 1e3 for t in times]


def theirs(name, batch, extent, causal):
    if name == "attention":
        q, k, v = (torch.randn(batch, 12, extent, 64, requires_grad=True) for _ in range(3))
        return best(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal), (q, k, v))
    x, scale, bias = torch.randn(batch, extent, requires_grad=True), torch.ones(extent), torch.zeros(extent)
    forward = {"layer_norm": lambda: F.layer_norm(x, (extent,), scale, bias), "softmax": lambda: F.softmax(x, 1), "gelu": lambda: F.gelu(x)}[name]
    return best(forward, (x,))


def ours(program, name, batch, extent, causal, threads):
    mode = "attention" if name == "attention" else "rows"
    command = [program, mode, str(batch), str(threads), str(extent)] + (["causal"] if causal else [])
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    words = next(line for line in lines if line.startswith(name + " ")).split()
    return [float(words[1]), float(words[2])]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--kernel-bench", default="build/bin/kernel-bench")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"PyTorch {torch.__version__} ({torch.backends.cpu.get_cpu_capability()}), {options.threads} threads, medians of {options.rounds} rounds")
    print("| kernel | ours: forward, backward ms | PyTorch: forward, backward ms | ours / PyTorch |\n|---|---|---|---|")
    cases = [("attention", 4, 512, False), ("attention", 4, 512, True), ("attention", 1, 2048, False), ("attention", 1, 2048, True)]
    cases += [(name, 4096, columns, False) for name in ("layer_norm", "softmax", "gelu") for columns in (768, 3072)]
    for name, batch, extent, causal in cases:
        sides = ([], [])
        for _ in range(options.rounds):
            sides[0].append(ours(options.kernel_bench, name, batch, extent, causal, options.threads))
            sides[1].append(theirs(name, batch, extent, causal))
        shown = [[statistics.median(run[i] for run in side) for i in (0, 1)] for side in sides]
        ratio = statistics.median(sum(a) for a in sides[0]) / statistics.median(sum(b) for b in sides[1])
        what = f"{batch} x 12 x {extent} x 64{', causal' if causal else ''}" if name == "attention" else f"{batch} x {extent}"
        print(f"| {name} {what} | {shown[0][0]:.1f}, {shown[0][1]:.1f} | {shown[1][0]:.1f}, {shown[1][1]:.1f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
