#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether adapters beside frozen weights in fewer bits end where adapters beside floats do: perplexities over several seeds, as a Markdown table.

    tuning_perplexity.py FOLDER [--seeds 3] [--pretraining 150] [--steps 20] [--sluicec build/bin/sluicec]

The model is GPT-2's architecture as transformers builds it (12 layers, 768 wide, 4096 words, 88 million parameters). The program of all its weights first trains on the sources of Python's standard
library; then adapters of rank 8 beside all matrices of the blocks learn scikit-learn's docstrings, a fifth of whose modules are held back, from the same weights for every form. Last PEFT reads the
adapters of each form's first seed beside the weights that the form stands for, and its logits are compared with the program's. FOLDER keeps data, weights and programs; what is there is not made
again. Needs the environment of tools/setup.sh --references."""
import argparse
import ast
import json
import math
import pathlib
import statistics
import sys
import sysconfig
import warnings

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn

from large_tuning import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORDS, TOKENS, BATCH, LAYERS, WIDTH = 4096, 128, 4, 12, 768
RANK, ALPHA = 8, 16
FORMS = {"floats": [], "int8": ["--frozen=int8"], "int4": ["--frozen=int4"]}


class Scores(nn.Module):
    def __init__(self):
        import transformers
        super().__init__()
        self.model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=WORDS, n_positions=TOKENS, n_embd=WIDTH, n_layer=LAYERS, n_head=WIDTH // 64, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, attn_implementation="eager", use_cache=False, bos_token_id=None, eos_token_id=None))

    def forward(self, input):
        return self.model(input_ids=input, attention_mask=torch.ones_like(input), use_cache=False).logits


def sources(limit=24_000_000):
    """Text of the standard library's modules, tests left out."""
    text = ""
    for path in sorted(pathlib.Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")):
        if not {"test", "tests", "site-packages", "idlelib"} & set(path.parts) and len(text) < limit:
            text += path.read_text(errors="ignore") + "\n"
    return text


def docstrings():
    """scikit-learn's, of four fifths of its modules and of the others."""
    import sklearn
    parts = ["", ""]
    for index, path in enumerate(sorted(pathlib.Path(sklearn.__file__).parent.rglob("*.py"))):
        if "tests" not in path.parts:
            kinds = (ast.FunctionDef, ast.ClassDef, ast.Module)
            found = [ast.get_docstring(node) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)]
            parts[index % 5 == 4] += "\n\n".join(text for text in found if text) + "\n\n"
    return parts


def prepare(folder):
    import tokenizers
    torch.manual_seed(1)
    base, (train, test) = sources(), docstrings()
    tokenizer = tokenizers.ByteLevelBPETokenizer()
    tokenizer.train_from_iterator([base], vocab_size=WORDS)
    for name, text in (("base", base), ("train", train), ("test", test[:30_000])):
        ids = np.array(tokenizer.encode(text).ids, np.uint16)
        ids.tofile(folder / f"{name}.u16.bin")
        print(f"{name}: {len(text):,} characters, {len(ids):,} tokens", flush=True)
    model = Scores().train()
    print(f"{sum(value.numel() for value in model.parameters()):,} parameters", flush=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, (torch.zeros(1, TOKENS, dtype=torch.int64),), str(folder / "model.onnx"), dynamo=False, training=torch.onnx.TrainingMode.TRAINING,
                          do_constant_folding=False, opset_version=17, input_names=["input"], output_names=["output"], dynamic_axes={"input": {0: "batch"}})


def compile_to(options, name, *flags):
    program = options.folder / name
    if not program.exists():
        run(options.sluicec, options.folder / "model.onnx", f"--batch={BATCH}", "--loss=token-cross-entropy", "--optimizer=adamw", "--clip-norm", *flags, "-o", program)
    return program


def train(options, program, log, data, *flags):
    """Loss of the last evaluation."""
    folder = options.folder
    if not (folder / log).exists():
        run(program, "--data", f"tokens:{folder / data}.u16.bin,stride=1", "--evaluate", f"tokens:{folder / 'test.u16.bin'}", "--schedule", "cosine", "--warmup", "5%", "--shuffle",
            "--clip-norm", "1", "--weight-decay", "0", "--quiet", "--force", "--log", folder / f"{log}.part", *flags)
        (folder / f"{log}.part").rename(folder / log)
    return last_evaluation(folder / log)


def last_evaluation(log):
    return [event["loss"] for event in map(json.loads, log.read_text().splitlines()) if event["event"] == "evaluate"][-1]


def peft_difference(options, form, program):
    """The largest difference between the program's logits and PEFT's, over the largest logit, for a batch of the test's text."""
    import peft
    folder, model = options.folder, Scores()
    np.save(folder / "rows.npy", np.fromfile(folder / "test.u16.bin", np.uint16)[:BATCH * TOKENS].reshape(BATCH, TOKENS).astype(np.int64))
    (folder / "rows").mkdir(exist_ok=True)
    (folder / "rows.npy").replace(folder / "rows/input.npy")
    adapter = folder / f"peft-{form}"
    run(program, "--init", folder / "base.safetensors", "--init", adapter / "adapter_model.safetensors", "--predict", folder / "rows", "--output", folder / "scores.npy", "--export",
        folder / "whole.safetensors", "--force", "--quiet")
    whole = load_file(folder / "whole.safetensors")
    missing = [name for name in model.load_state_dict(whole, strict=False).missing_keys if not name.endswith(("lm_head.weight", "attn.bias", "masked_bias"))]
    assert not missing, missing
    tuned = peft.PeftModel.from_pretrained(model, str(adapter)).eval()
    with torch.no_grad():
        theirs = tuned(torch.from_numpy(np.load(folder / "rows/input.npy"))).numpy()
    ours = np.load(folder / "scores.npy").reshape(theirs.shape)
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--sluicec", default=str(ROOT / "build/bin/sluicec"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--pretraining", type=int, default=150)
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    folder = options.folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "model.onnx").exists():
        prepare(folder)
    train(options, compile_to(options, "whole"), "base.jsonl", "base", "--steps", options.pretraining, "--lr", "6e-4", "--export", folder / "base.safetensors")
    if not (folder / "before.jsonl").exists():
        run(folder / "whole", "--init", folder / "base.safetensors", "--evaluate", f"tokens:{folder / 'test.u16.bin'}", "--quiet", "--log", folder / "before.jsonl")
    print(f"perplexity of the docstrings before: {math.exp(last_evaluation(folder / 'before.jsonl')):.2f}", flush=True)
    print("| frozen weights | " + " | ".join(f"seed {seed + 1}" for seed in range(options.seeds)) + " | mean | over floats |\n|---|" + "---|" * (options.seeds + 2))
    means, programs = {}, {}
    for form, flags in FORMS.items():
        programs[form] = compile_to(options, form, f"--adapter=lora,rank={RANK},alpha={ALPHA}", *flags)
        values = []
        for seed in range(1, options.seeds + 1):
            more = []
            if seed == 1:
                (folder / f"peft-{form}").mkdir(exist_ok=True)
                more = ["--export", folder / f"peft-{form}/adapter_model.safetensors,peft"]
            values.append(math.exp(train(options, programs[form], f"{form}-{seed}.jsonl", "train", "--steps", options.steps, "--lr", "2e-3", "--seed", seed, "--init", folder / "base.safetensors", *more)))
        means[form] = statistics.mean(values)
        print(f"| {form} | " + " | ".join(f"{value:.3f}" for value in values) + f" | {means[form]:.3f} | {100 * (means[form] / means['floats'] - 1):+.2f} % |", flush=True)
    for form, program in programs.items():
        print(f"{form}: PEFT's logits differ by {peft_difference(options, form, program):.1e} of the largest", flush=True)


if __name__ == "__main__":
    sys.exit(main())
