#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Seconds a token of --generate with and without a cache of keys and values, where texts end at the program's longest.

    decoding.py FOLDER [--layers 12] [--width 384] [--tokens 512] [--texts 1] [--rounds 3] [--threads 2] [--frozen int4] [--precision bf16] [--sluicec build/bin/sluicec]

A model of GPT-2's architecture with random weights and a vocabulary of 4096 words. A program goes on with a prompt of tokens - 34 ids by 2 tokens, then by 34; the difference is 32 tokens', without what
reading the prompt takes. Rounds alternate between both programs; a number is the median over rounds. What is made is kept in FOLDER, so that a second call, `chrt -f 10 tools/bench/decoding.py FOLDER`,
measures at real-time priority. Needs the Python environment of tools/setup.sh --references."""
import argparse
import json
import pathlib
import random
import re
import statistics
import sys
import warnings

from large_tuning import run

WORDS, FEW, MORE = 4096, 2, 34


def make(options):
    import torch
    import transformers
    config = transformers.GPT2Config(vocab_size=WORDS, n_positions=options.tokens, n_embd=options.width, n_layer=options.layers, n_head=options.width // 64, use_cache=False, attn_implementation="eager",
                                     resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, bos_token_id=None, eos_token_id=None)
    torch.manual_seed(1)
    model = transformers.GPT2LMHeadModel(config).train()
    forward = model.forward
    model.forward = lambda input_ids: forward(input_ids=input_ids, attention_mask=torch.ones_like(input_ids), use_cache=False).logits
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, (torch.ones(2, 16, dtype=torch.int64),), str(options.folder / "model.onnx"), dynamo=False, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                          input_names=["input_ids"], output_names=["scores"], dynamic_axes={name: {0: "batch", 1: "tokens"} for name in ("input_ids", "scores")})
    draw = random.Random(2)
    lines = [json.dumps({"input_ids": [draw.randrange(WORDS) for _ in range(options.tokens - MORE)]}) for _ in range(options.texts)]
    (options.folder / "prompts.jsonl").write_text("\n".join(lines) + "\n")


def seconds(options, name, tokens):
    said = run(options.folder / name, "--generate", options.folder / "prompts.jsonl", "--output", options.folder / f"{name}.jsonl", "--tokens", tokens, "--force")
    found = re.search(r"generated: +(\d+) tokens .*, ([\d.e+-]+) tokens/s", said)
    return int(found[1]) / float(found[2])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    for flag, default in (("layers", 12), ("width", 384), ("tokens", 512), ("texts", 1), ("rounds", 3), ("threads", 2)):
        parser.add_argument(f"--{flag}", type=int, default=default)
    for flag, default in (("sluicec", "build/bin/sluicec"), ("frozen", ""), ("precision", "fp32")):
        parser.add_argument(f"--{flag}", default=default)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if not (options.folder / "model.onnx").exists():
        make(options)
    flags = [options.sluicec, options.folder / "model.onnx", f"--threads={options.threads}", f"--batch={options.texts}", f"--dim=tokens={options.tokens}", "--loss=token-cross-entropy", "--ignore-index=-100",
             f"--precision={options.precision}"] + ([f"--frozen={options.frozen}", "--adapter=lora,rank=8,alpha=16"] if options.frozen else [])
    programs = {f"{options.frozen or 'floats'}-{options.precision}-{name}": more for name, more in (("whole", []), ("cached", ["--kv-cache"]))}
    for name, more in programs.items():
        if not (options.folder / name).exists():
            print(name, run(*flags, *more, "--force", "-o", options.folder / name).strip().splitlines()[0], flush=True)
    if options.rounds == 0:
        return 0
    rounds = {name: [] for name in programs}
    for _ in range(options.rounds):
        for name in programs:
            rounds[name].append((seconds(options, name, MORE) - seconds(options, name, FEW)) / (MORE - FEW))
    for name, measured in rounds.items():
        print(f"{name}: {statistics.median(measured):.5f} s a token, of {options.texts} texts at once ({', '.join(f'{value:.5f}' for value in measured)})")
    answers = [(options.folder / f"{name}.jsonl").read_text() for name in programs]
    print("the same answers" if answers[0] == answers[1] else "other answers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
