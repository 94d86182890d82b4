# SPDX-License-Identifier: Apache-2.0
"""Small Llama and GPT-2 of transformers that read packed rows, their samples, and PyTorch's losses and gradients on samples that are not packed, for test/execute/packing.test.

    packing.py make FOLDER       tokenizer.json, texts.jsonl, and of each model NAME.onnx
    packing.py compare FOLDER    NAME.jsonl and NAME.gradients of programs, which read rows.jsonl, against PyTorch, which reads alone.jsonl sample by sample
"""
import json
import pathlib
import random
import sys
import warnings

import numpy

WORDS, LONGEST, BATCH, RATE, STEPS = 29, 32, 2, 0.2, 6


def network(name):
    import torch
    import transformers

    class Packed(torch.nn.Module):
        """Tokens see those before them of their own sample."""
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, input_ids, position_ids, segments):
            places = torch.arange(input_ids.shape[1])
            sees = (segments[:, :, None] == segments[:, None, :]) & (places[:, None] >= places[None, :])
            mask = torch.where(sees, 0.0, -1e9)[:, None]
            return self.model(input_ids=input_ids, position_ids=position_ids, attention_mask=mask, use_cache=False).logits

    torch.manual_seed(3)
    common = dict(vocab_size=WORDS, use_cache=False, attn_implementation="eager", bos_token_id=None, eos_token_id=None)
    if name == "llama":
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                                                                       max_position_embeddings=LONGEST, pad_token_id=None, **common))
    else:
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_positions=LONGEST, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, **common))
    return Packed(model).train()


def make(folder):
    import tokenizers
    import torch
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({f"w{i}": i for i in range(WORDS)}, unk_token="w0"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    draw = random.Random(2)
    lines = [{"ask": " ".join(f"w{draw.randrange(WORDS)}" for _ in range(draw.randint(1, 9))), "answer": " ".join(f"w{draw.randrange(WORDS)}" for _ in range(draw.randint(1, 12)))}
             for _ in range(48)]
    (folder / "texts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for name in ("llama", "gpt2"):
        sample = tuple(torch.ones(2, LONGEST, dtype=torch.int64) for _ in range(3))
        names = ["input_ids", "position_ids", "segments"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(network(name), sample, str(folder / f"{name}.onnx"), dynamo=False, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, opset_version=17,
                              input_names=names, output_names=["scores"], dynamic_axes={n: {0: "batch", 1: "tokens"} for n in [*names, "scores"]})


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def samples_of(row):
    """Ids and targets of the samples of a row."""
    for number in range(1, max(row["segments"]) + 1):
        places = [i for i, segment in enumerate(row["segments"]) if segment == number]
        yield [row["input_ids"][i] for i in places], [row["target"][i] for i in places]


def train(name, rows):
    """Losses of steps, and gradients of the first: each sample by itself, at positions from 0 on."""
    import torch
    model = network(name).double()
    optimizer, losses, gradients = torch.optim.SGD(model.parameters(), RATE), [], None
    for step in range(STEPS):
        optimizer.zero_grad()
        total, count = 0, 0
        for place in range(BATCH):
            for ids, target in samples_of(rows[(step * BATCH + place) % (len(rows) // BATCH * BATCH)]):
                ids, target = torch.tensor([ids]), torch.tensor(target)
                scores = model(ids, torch.arange(ids.shape[1])[None], torch.ones_like(ids))[0]
                total = total + torch.nn.functional.cross_entropy(scores, target, ignore_index=-100, reduction="sum")
                count += int((target != -100).sum())
        (total / count).backward()
        gradients = gradients or {key: value.grad.numpy().copy() for key, value in model.named_parameters()}
        optimizer.step()
        losses.append((total / count).item())
    return losses, gradients


def compare(folder):
    from safetensors.numpy import load_file
    rows, alone = read(folder / "rows.jsonl"), read(folder / "alone.jsonl")
    packed = sorted(sample for row in rows for sample in samples_of(row))
    assert packed == sorted((line["input_ids"], line["target"]) for line in alone) and len(rows) < len(alone) / 2
    for name in ("llama", "gpt2"):
        losses, gradients = train(name, rows)
        found = [line["loss"] for line in read(folder / f"{name}.jsonl") if line["event"] == "step"]
        numpy.testing.assert_allclose(found, losses, rtol=1e-5, err_msg=name)
        dumped = load_file(folder / f"{name}.gradients")
        known = {key: value for key, value in gradients.items() if key in dumped}
        assert len(known) == len(dumped) >= 20, (sorted(dumped), sorted(gradients))
        for key, wanted in known.items():
            wanted = wanted if wanted.shape == dumped[key].shape else wanted.T
            error = numpy.linalg.norm(dumped[key] - wanted) / numpy.linalg.norm(wanted)
            assert error < 1e-5, (name, key, error)
        print(f"{name}: {len(losses)} losses and {len(dumped)} gradients as PyTorch on {len(alone)} samples of their own")


if __name__ == "__main__":
    {"make": make, "compare": compare}[sys.argv[1]](pathlib.Path(sys.argv[2]))
