# SPDX-License-Identifier: Apache-2.0
"""For lines-of-ids.test: `make FOLDER` writes a tokenizer of words and samples, `check FOLDER` looks at the lines of ids that were made of them."""
import itertools
import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

WORDS = ["<unk>", "<end>", "a", "b", "c", "d", "e", "f"]


def make(folder):
    from tokenizers import Tokenizer, models, pre_tokenizers
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "texts.jsonl").write_text('{"ask": "a b c", "text": "d e"}\n\n{"ask": "a", "text": ""}\n{"ask": "a b c d e f", "text": "f"}\n')
    (folder / "plain.txt").write_text("a b c\nd\ne f g\n")


def brute(lengths, count):
    """Of all choices of extents the elements of the best."""
    extents = sorted(set(lengths))
    best = None
    for chosen in itertools.combinations(extents[:-1], min(count, len(extents)) - 1):
        chosen = (*chosen, extents[-1])
        elements = sum(next(extent for extent in chosen if extent >= length) for length in lengths)
        best = elements if best is None else min(best, elements)
    return best


def check(folder):
    from sluice._tokenize import least_padding
    read = lambda name: [json.loads(line) for line in (folder / name).read_text().splitlines()]  # noqa: E731
    assert read("asked.jsonl") == [{"ids": [2, 3, 4, 5, 6], "target": [-100, -100, 5, 6, 1], "mask": [1] * 5},
                                   {"ids": [2], "target": [1], "mask": [1]},
                                   {"ids": [2, 3, 4, 5, 6, 7, 7], "target": [-100, -100, -100, -100, -100, 7, 1], "mask": [1] * 7}], read("asked.jsonl")
    assert read("plain.jsonl") == [{"input_ids": [2, 3], "target": [3, 4]}, {"input_ids": [6, 7], "target": [7, 0]}], read("plain.jsonl")
    assert [len(line["ids"]) for line in read("cut.jsonl")] == [3, 1], read("cut.jsonl")  # of the third nothing but its question is left
    draw = random.Random(3)
    for count in (1, 2, 3, 5):
        lengths = [draw.randint(1, 14) for _ in range(40)]
        extents, padding = least_padding(lengths, count)
        elements = sum(next(extent for extent in extents if extent >= length) for length in lengths)
        assert elements == brute(lengths, count) and len(extents) <= count, (lengths, extents)
        assert abs(padding - 100 * (1 - sum(lengths) / elements)) < 1e-9
    print("lines and shapes are right")


{"make": make, "check": check}[sys.argv[1]](pathlib.Path(sys.argv[2]))
