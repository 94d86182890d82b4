# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of pages of documentation, each page in a folder of its own with small data and models under the names that it uses.

    guide.py --out FOLDER --onnx-data FOLDER [--references PYTHON] PAGE.md...

What is run: blocks of ```sh whole; in ```console blocks and blocks without a language the lines after `$ `; blocks of ```python where there is a
Python with PyTorch. A command of a console block has to print the lines that stand after it, in any order, whatever their numbers are (`...` stands for
others), and fails exactly if one of them is an error.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass

import guide_data

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "test/models"

# What pages call a model, what stands in for it, and what it is compiled with where the page does not do that.
STAND_INS = {
    "resnet18": ("deep/residual/model.onnx", "--batch=16 --memory-budget=60% --clip-norm --accumulate --ema"),
    "mlp": ("tiny/mlp/model.onnx", "--batch=8"),
    "tagger": ("tiny/timefirst/model.onnx", "--batch=8 --loss=token-cross-entropy --input order=shared --input scale=shared"),
    "unet": ("deep/segmentation/model.onnx", "--batch=4 --class-weights=1,2,2,4 --ignore-index=255"),
    "onesample": ("tiny/onesample/model.onnx", "--batch-dim input=none"),
    "gpt": ("tiny/gpt/model.onnx", "--batch=8 --loss=token-cross-entropy"),
}
# Commands that are not run, by how they begin.
SKIPPED = {
    "tools/demo.sh": "installs and builds",
    "tools/setup.sh": "installs and builds",
    "tools/wheel.sh": "installs and builds, see wheel.sh",
}
# What is changed in commands and scripts of a page.
SUBSTITUTIONS = {
    "docs/fine-tuning.md": [('weights="DEFAULT"', "weights=None")],  # nothing is downloaded
    "docs/laptop.md": [("tokens=128,256,512", "tokens=24,40"), ("rank=16", "rank=4")],
}
# Pages that make their own models.
NEEDS_REFERENCES = ["docs/does-not-fit.md", "docs/fine-tuning.md", "docs/laptop.md", "docs/python.md", "docs/shapes.md"]
# What a page's first script finds defined, as its reader has it.
GIVEN = {
    "docs/laptop.md": """import json, pathlib, random, tokenizers, transformers
if not pathlib.Path("model").exists():
    words, draw = "what is a slot the buffer of an offset in arena budget bytes".split(), random.Random(1)
    said = lambda: " ".join(draw.choices(words, k=draw.randint(1, 6)))
    for name, count in (("chats", 48), ("held-out", 9)):
        chats = [[{"role": role, "content": said()} for role in ("user", "assistant") * draw.randint(1, 2)] for _ in range(count)]
        pathlib.Path(f"{name}.jsonl").write_text("".join(json.dumps({"messages": chat}) + "\\n" for chat in chats))
    tokenizer = tokenizers.ByteLevelBPETokenizer()
    tokenizer.train_from_iterator([" ".join(words)] * 9, vocab_size=300, special_tokens=["<|im_start|>", "<|im_end|>"])
    template = "{% for m in messages %}<|im_start|>{{ m.role }}\\n{{ m.content }}<|im_end|>\\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\\n{% endif %}"
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer._tokenizer, eos_token="<|im_end|>", chat_template=template).save_pretrained("model")
    config = transformers.LlamaConfig(vocab_size=320, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512)
    transformers.LlamaForCausalLM(config).save_pretrained("model")
""",
    "docs/python.md": """import torch
layers = [layer for i in range(6) for layer in (torch.nn.Conv2d(8 if i else 3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU())]
module = torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 10))
example, images, labels = torch.zeros(16, 3, 16, 16), torch.randn(48, 3, 16, 16), torch.randint(10, (48,))
""",
}


@dataclass
class Command:
    text: str
    line: int
    output: list  # lines that it has to print; None: any


def blocks(page):
    """(language, first line, lines) of the fenced blocks of a page."""
    fence = None
    for number, line in enumerate(page.read_text().split("\n"), 1):
        if fence and line == "```":
            yield fence
            fence = None
        elif fence:
            fence[2].append(line)
        elif line.startswith("```"):
            fence = (line[3:].strip(), number + 1, [])


def commands(page, python, given):
    for language, first, lines in blocks(page):
        if language == "sh":
            yield Command("set -eu\n" + "\n".join(lines), first, None)
        elif language == "python" and python:
            name = lines[0][2:] if lines[0].startswith("# ") else "script.py"  # its first line may say what the file is called
            yield Command(f"cat > {name} <<'END'\n{given}" + "\n".join(lines) + f"\nEND\n{python} {name}", first, None)
        elif language in ("", "console"):
            found = [i for i, line in enumerate(lines) if line.startswith("$ ")]
            for here, after in zip(found, found[1:] + [len(lines)]):
                yield Command(lines[here][2:], first + here, [line for line in lines[here + 1:after] if line not in ("...", "")])


def without_numbers(line):
    return re.sub(r"\d[\d.]*(e[+-]?\d+)?", "#", line).rstrip()


def check(command, where, folder, environment):
    """Runs a command in `folder`; whether it did what the page says."""
    skipped = next((why for start, why in SKIPPED.items() if command.text.removeprefix("set -eu\n").startswith(start)), None)
    if skipped:
        print(f"{where}: skipped: {skipped}")
        return True
    result = subprocess.run(["bash", "-c", command.text], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, timeout=600)
    printed = {without_numbers(line) for line in result.stdout.split("\n")}
    missing = [line for line in command.output or [] if without_numbers(line) not in printed]
    refused = any("error:" in line for line in command.output or [])
    if (result.returncode != 0) != refused or missing:
        print(f"{where}: FAILED: {command.text}\nstatus {result.returncode}, printed:\n{result.stdout}missing: {missing}")
        return False
    print(f"{where}: ran")
    return True


def prepare(folder, onnx_data):
    """The folder of a page, with what all of them find there."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "build/demo").mkdir(parents=True)
    (folder / "build/bin").symlink_to(pathlib.Path(shutil.which("sluicec")).parent)
    guide_data.prepare(folder)
    for name, (model, _) in STAND_INS.items():
        shutil.copy(MODELS / model, folder / f"{name}.onnx")
    for name, model in (("tagged", "timefirst"), ("single", "onesample")):
        shutil.copytree(MODELS / "tiny" / model / "data", folder / name)
    shutil.copy(MODELS / STAND_INS["resnet18"][0], folder / "build/demo/digits.onnx")
    shutil.copy(onnx_data / "node/test_dynamicquantizelinear/model.onnx", folder / "quantized.onnx")
    shutil.copy(ROOT / "examples/hello/hello.c", folder)
    for file in (folder.parent / "programs").iterdir():
        shutil.copy(file, folder)


def compile_stand_ins(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, (model, flags) in STAND_INS.items():
        subprocess.run(["sluicec", MODELS / model, *flags.split(), "-o", folder / name], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--onnx-data", type=pathlib.Path, required=True)
    parser.add_argument("--references", type=pathlib.Path)
    parser.add_argument("pages", nargs="+")
    options = parser.parse_args()
    python = options.references if options.references and options.references.exists() else None
    out = options.out.resolve()
    compile_stand_ins(out / "programs")
    good = True
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1", "SLUICE_CACHE": str(out / "libraries")}
    for name in options.pages:
        if name in NEEDS_REFERENCES and not python:
            print(f"{name}: skipped: it needs PyTorch (tools/setup.sh --references)")
            continue
        folder = out / name.replace("/", "-")
        prepare(folder, options.onnx_data)
        its_python = f"{python.parent}:" if name in NEEDS_REFERENCES else ""  # which the page calls python
        environment["PATH"] = f"{folder / 'build/bin'}:{its_python}{os.environ['PATH']}"
        for command in commands(ROOT / name, python if name in NEEDS_REFERENCES else None, GIVEN.get(name, "")):
            for old, new in SUBSTITUTIONS.get(name, []):
                command.text = command.text.replace(old, new)
            good &= check(command, f"{name}:{command.line}", folder, environment)
    sys.exit(not good)


if __name__ == "__main__":
    main()
