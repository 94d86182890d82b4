# SPDX-License-Identifier: Apache-2.0
"""Small Llama and GPT-2 of transformers, prompts, and what transformers' generate adds to them by their trained weights, for test/execute/generate.test and kv-cache.test.

    generating.py make FOLDER       NAME.onnx of both, one that is not causal, prompts, a tokenizer
    generating.py compare FOLDER    NAME.answers of programs, greedy, against transformers with the weights NAME.trained.safetensors
    generating.py logprobs FOLDER   those of the tokens in NAME.log.jsonl against NAME-whole.log.jsonl
"""
import json
import pathlib
import random
import sys
import warnings

import numpy

from packing import LONGEST, WORDS, network, read

LENGTHS = (3, 1, 9, 17, 30, 8, 24)
TOKENS = 6


def export(model, inputs, path):
    import torch
    sample = tuple(torch.ones(2, LONGEST, dtype=torch.int64) for _ in inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, sample, str(path), dynamo=False, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, opset_version=17, input_names=inputs,
                          output_names=["scores"], dynamic_axes={n: {0: "batch", 1: "tokens"} for n in [*inputs, "scores"]})


def lively(model):
    """Of larger weights, so that what follows a token depends on what stands before it."""
    import torch
    with torch.no_grad():
        for value in model.parameters():
            if value.dim() > 1:
                value.mul_(12)
    return model


def alone():
    """GPT-2 that reads ids and nothing else."""
    import torch

    class Scores(torch.nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, input_ids):
            return self.model(input_ids=input_ids, attention_mask=torch.ones_like(input_ids), use_cache=False).logits
    return Scores(network("gpt2").model).train()


def sees_all():
    """Each token sees the mean of all: not causal."""
    import torch
    from torch import nn

    class Mean(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(WORDS, 8), nn.Linear(8, WORDS)

        def forward(self, input_ids):
            x = self.table(input_ids)
            return self.head(x + x.mean(1, keepdim=True))
    torch.manual_seed(1)
    return Mean()


def make(folder):
    import tokenizers
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({f"w{i}": i for i in range(WORDS)}, unk_token="w0"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    export(lively(network("llama")), ["input_ids", "position_ids", "segments"], folder / "llama.onnx")
    export(lively(alone()), ["input_ids"], folder / "gpt2.onnx")
    export(sees_all(), ["input_ids"], folder / "mean.onnx")
    draw = random.Random(4)
    prompts = [[draw.randrange(WORDS) for _ in range(length)] for length in LENGTHS]
    lines = [json.dumps({"input_ids": ids}) + "\n" for ids in prompts]
    (folder / "prompts.jsonl").write_text("".join(lines))
    (folder / "first.jsonl").write_text("".join(lines[:2]))
    places = [{"input_ids": ids, "position_ids": list(range(max(2, len(ids)))), "segments": [1] * max(2, len(ids))} for ids in prompts]
    (folder / "placed.jsonl").write_text("".join(json.dumps(line) + "\n" for line in places))
    for name, ids in (("empty", []), ("number", 3), ("range", [1, WORDS]), ("long", [1] * (LONGEST + 1))):
        (folder / f"bad-{name}.jsonl").write_text(lines[0] + json.dumps({"input_ids": ids}) + "\n")


def compare(folder):
    import torch
    from safetensors.torch import load_file
    for name in ("llama", "gpt2"):
        model = network(name)
        missing, unexpected = model.load_state_dict(load_file(folder / f"{name}.trained.safetensors"), strict=False)
        assert not unexpected and all("lm_head" in key for key in missing), (missing, unexpected)
        answers = read(folder / f"{name}.answers.jsonl")
        assert [len(line["input_ids"]) for line in answers] == list(LENGTHS)
        for line in answers:
            ids = torch.tensor([line["input_ids"]])
            room = LONGEST - ids.shape[1] + 1
            ended = "full" if room < TOKENS else "tokens"
            assert line["ended"] == ended and len(line["answer"]) == min(room, TOKENS), line
            with torch.no_grad():
                known = model.model.eval().generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=len(line["answer"]), do_sample=False, pad_token_id=0)[0, ids.shape[1]:].tolist()
            assert line["answer"] == known, (name, line, known)
        assert len({token for line in answers for token in line["answer"]}) > 5, answers
        print(f"{name}: {len(answers)} answers as transformers")
    greedy = read(folder / "gpt2.answers.jsonl")
    stop = greedy[0]["answer"][2]
    (folder / "stop").write_text(str(stop))
    (folder / "words").write_text(" ".join(f"w{i}" for i in greedy[0]["input_ids"]))
    (folder / "wanted").write_text(" ".join(f"w{i}" for i in greedy[0]["input_ids"] + greedy[0]["answer"]) + "\n")


def stopped(folder):
    stop = int((folder / "stop").read_text())
    for line, whole in zip(read(folder / "stopped.jsonl"), read(folder / "gpt2.answers.jsonl"), strict=True):
        answer = whole["answer"]
        assert line["answer"] == (answer[:answer.index(stop)] if stop in answer else answer) and (line["ended"] == "stop") == (stop in answer), (line, whole)
    drawn = read(folder / "drawn.jsonl")
    assert drawn == read(folder / "again.jsonl") != read(folder / "other.jsonl")
    assert drawn[:2] == read(folder / "few.jsonl")
    assert read(folder / "one.jsonl") == read(folder / "gpt2.answers.jsonl")
    assert len({tuple(line["answer"]) for line in drawn}) > 3
    events = [line for line in read(folder / "log.jsonl") if line["event"] == "token"]
    assert [event["id"] for event in events if event["prompt"] == 0] == drawn[0]["answer"] and len(events) == sum(len(line["answer"]) for line in drawn)
    numpy.testing.assert_equal(len(drawn), len(LENGTHS))
    print("stops, seeds and the log are right")


def logprobs(folder):
    """Of both programs: those with a cache decode one token at a time, and differ by rounding."""
    for name in ("llama", "gpt2"):
        lists = []
        for program in (name, f"{name}-whole"):
            events = [line for line in read(folder / f"{program}.log.jsonl") if line["event"] == "token"]
            lists.append({(event["prompt"], place): event["logprob"] for place, event in enumerate(sorted(events, key=lambda event: event["prompt"]))})
        assert lists[0].keys() == lists[1].keys()
        numpy.testing.assert_allclose(list(lists[0].values()), list(lists[1].values()), rtol=1e-5, atol=2e-5)
        print(f"{name}: {len(lists[0])} log-probabilities differ by {max(abs(a - b) for a, b in zip(lists[0].values(), lists[1].values())):.2g} at most")


if __name__ == "__main__":
    {"make": make, "compare": compare, "stopped": stopped, "logprobs": logprobs}[sys.argv[1]](pathlib.Path(sys.argv[2]))
