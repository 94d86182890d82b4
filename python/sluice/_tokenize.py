# SPDX-License-Identifier: Apache-2.0
"""python -m sluice tokenize: text becomes the lines of ids that programs read as --data jsonl:FILE.

Each line of a JSONL file is a sample: its text, or a prompt and what follows it. Of n tokens the model reads the first n - 1 and is compared with the last n - 1; those of
the prompt are no targets. Needs the package tokenizers."""
import argparse
import json
import os
import pathlib
import sys

import numpy

IGNORED = -100


class Wrong(Exception):
    pass


def parse(words):
    parser = argparse.ArgumentParser(prog="sluice tokenize", description="Makes lines of token ids, for --data jsonl:FILE, of a JSONL file of texts.")
    parser.add_argument("text", nargs="+", type=pathlib.Path, help="JSONL files, or .txt with a sample a line")
    parser.add_argument("--tokenizer", required=True, help="a tokenizer.json")
    parser.add_argument("-o", dest="output", required=True, type=pathlib.Path, help="the file of ids")
    parser.add_argument("--field", default="text", help="the field that is the text (default text)")
    parser.add_argument("--prompt", help="the field of a prompt, whose tokens are no targets; --field then follows it")
    parser.add_argument("--end", help="a token that ends each sample, as <|endoftext|>")
    parser.add_argument("--longest", type=int, help="cut samples to so many tokens (default: as they are)")
    parser.add_argument("--ids", default="input_ids", help="what the model calls its ids (default input_ids)")
    parser.add_argument("--mask", help="what the model calls its mask (default: it has none)")
    parser.add_argument("--target", default="target", help="what programs call the targets (default target)")
    parser.add_argument("--buckets", type=int, default=4, help="how many shapes to propose (default 4)")
    return parser.parse_args(words)


def lines_of(path, options):
    """(line, prompt or None, text) of each sample."""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            if path.suffix == ".txt":
                yield number, None, line.rstrip("\n")
                continue
            try:
                sample = json.loads(line)
            except ValueError as error:
                raise Wrong(f"{path}: line {number} is no JSON: {error}") from None
            for field in filter(None, (options.prompt, options.field)):
                if not isinstance(sample, dict) or not isinstance(sample.get(field), str):
                    raise Wrong(f"{path}: line {number} has no text '{field}'; --field and --prompt say what it is called")
            yield number, sample[options.prompt] if options.prompt else None, sample[options.field]


def sample_of(tokenizer, end, prompt, text, options):
    """Ids, and how many of them are the prompt's."""
    first = tokenizer.encode(prompt).ids if prompt is not None else []
    ids = first + tokenizer.encode(text, add_special_tokens=prompt is None).ids + ([end] if end is not None else [])
    return ids[:options.longest], len(first)


def write(tokenizer, end, options):
    """Returns the lengths, and how many samples were too short for a target."""
    lengths, short, aside = [], 0, options.output.with_name(options.output.name + ".part")
    try:
        with open(aside, "w", encoding="utf-8") as out:
            for path in options.text:
                for _, prompt, text in lines_of(path, options):
                    ids, given = sample_of(tokenizer, end, prompt, text, options)
                    targets = [IGNORED] * max(0, given - 1) + ids[max(1, given):]
                    if len(ids) < 2 or all(target == IGNORED for target in targets):
                        short += 1
                        continue
                    sample = {options.ids: ids[:-1], options.target: targets[:len(ids) - 1]}
                    if options.mask:
                        sample[options.mask] = [1] * (len(ids) - 1)
                    out.write(json.dumps(sample) + "\n")
                    lengths.append(len(ids) - 1)
        if not lengths:
            raise Wrong(f"{', '.join(map(str, options.text))}: no sample has a token to predict")
        os.replace(aside, options.output)
    finally:
        aside.unlink(missing_ok=True)
    return lengths, short


def least_padding(lengths, count):
    """The extents, the longest sample's the last, that fill up least, and which percentage of what is read that is."""
    extents, samples = numpy.unique(lengths, return_counts=True)
    if len(extents) > 2048:  # neighbours stand together, by the larger
        steps = numpy.arange(1, 2049) * len(extents) // 2048
        samples = numpy.diff(numpy.concatenate([[0], numpy.cumsum(samples)[steps - 1]]))
        extents = extents[steps - 1]
    before = numpy.concatenate([[0], numpy.cumsum(samples)])
    cost, choices = extents * before[1:], []  # elements of all samples up to each, in one bucket
    for _ in range(min(count, len(extents)) - 1):
        earlier = numpy.concatenate([[0], cost[:-1]])
        all_costs = earlier[None, :] + extents[:, None] * (before[1:, None] - before[None, :-1])
        all_costs = numpy.where(numpy.arange(len(extents))[None, :] <= numpy.arange(len(extents))[:, None], all_costs, numpy.iinfo(numpy.int64).max)
        choices.append(all_costs.argmin(1))
        cost = all_costs.min(1)
    chosen, at = [int(extents[-1])], len(extents) - 1
    for choice in reversed(choices):
        at = int(choice[at]) - 1
        if at < 0:
            break
        chosen.insert(0, int(extents[at]))
    return chosen, 100 * (1 - sum(lengths) / float(cost[-1]))


def main(words):
    options = parse(words)
    try:
        from tokenizers import Tokenizer
    except ImportError:
        sys.exit("sluice tokenize: error: it needs the package tokenizers: pip install tokenizers")
    try:
        try:
            tokenizer = Tokenizer.from_file(options.tokenizer)
        except Exception as error:  # whatever the package throws
            raise Wrong(f"{options.tokenizer}: {error}") from None
        end = tokenizer.token_to_id(options.end) if options.end else None
        if options.end and end is None:
            raise Wrong(f"--end {options.end} is no token of {options.tokenizer}")
        if any(path.resolve() == options.output.resolve() for path in options.text):
            raise Wrong(f"-o {options.output} is one of the texts")
        lengths, short = write(tokenizer, end, options)
    except (Wrong, OSError, UnicodeDecodeError) as error:
        sys.exit(f"sluice tokenize: error: {error}")
    print(f"{options.output}: {len(lengths)} samples, {sum(lengths)} tokens, {max(lengths)} in the longest"
          + (f"; {short} had no token to predict and were left out" if short else ""))
    extents, padding = least_padding(lengths, options.buckets)
    print(f"shapes that fill up least: --dim tokens={','.join(map(str, extents))}, of which {padding:.1f} % is padding")
