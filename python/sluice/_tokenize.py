# SPDX-License-Identifier: Apache-2.0
"""python -m sluice tokenize: text becomes the lines of ids that programs read as --data jsonl:FILE.

Each line of a JSONL file is a sample: its text, a prompt and what follows it, or a chat (_chat.py). Of n tokens the model reads the first n - 1 and is compared with the last
n - 1; those of prompts, and of all turns but the assistant's, are no targets. Several may be packed into a row (_pack.py). Needs the package tokenizers."""
import argparse
import json
import os
import pathlib
import sys

import numpy

from . import _chat, _pack

IGNORED = -100


class Wrong(Exception):
    pass


def parse(words):
    parser = argparse.ArgumentParser(prog="sluice tokenize", description="Makes lines of token ids, for --data jsonl:FILE, of a JSONL file of texts.")
    parser.add_argument("text", nargs="+", type=pathlib.Path, help="JSONL files, or .txt with a sample a line")
    parser.add_argument("--tokenizer", required=True, help="a tokenizer.json")
    parser.add_argument("-o", dest="output", required=True, type=pathlib.Path, help="the file of ids")
    parser.add_argument("--field", help="the field that is the text (default text; with --chat messages)")
    parser.add_argument("--prompt", help="the field of a prompt, whose tokens are no targets; --field then follows it")
    parser.add_argument("--chat", metavar="TEMPLATE", help="--field is a list of turns, {role, content} each, of which the assistant's are learnt: "
                        f"{', '.join(_chat.NAMED)}, a tokenizer_config.json with a template, or a .jinja file")
    parser.add_argument("--end", help="a token that ends each sample, as <|endoftext|>")
    parser.add_argument("--longest", type=int, help="cut samples to so many tokens (default: as they are)")
    parser.add_argument("--ids", default="input_ids", help="what the model calls its ids (default input_ids)")
    parser.add_argument("--mask", help="what the model calls its mask (default: it has none)")
    parser.add_argument("--positions", help="what the model calls the positions of tokens in their sample (default: it has none)")
    parser.add_argument("--segments", help="what the model calls the numbers of samples in a row, 0 behind them (default: it has none)")
    parser.add_argument("--target", default="target", help="what programs call the targets (default target)")
    parser.add_argument("--buckets", type=int, default=4, help="how many shapes to propose (default 4)")
    parser.add_argument("--pack", type=int, metavar="TOKENS", help="put several samples into each row of so many tokens; needs --segments or --positions")
    parser.add_argument("--seed", type=int, default=0, help="of the order of packed rows (default 0)")
    options = parser.parse_args(words)
    if options.chat and options.prompt:
        parser.error("--chat and --prompt exclude each other: turns say what is learnt")
    if options.pack is not None and options.pack < 1:
        parser.error(f"--pack expects a number of tokens, got {options.pack}")
    if options.pack and not (options.segments or options.positions):
        parser.error("--pack needs --segments NAME or --positions NAME: without such an input the samples of a row would see each other")
    if options.seed < 0:
        parser.error(f"--seed expects a number of 0 or more, got {options.seed}")
    options.field = options.field or ("messages" if options.chat else "text")
    return options


def lines_of(path, options):
    """(line, what it holds): its text for a .txt, else an object."""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            if path.suffix == ".txt":
                yield number, {options.field: line.rstrip("\n")}
                continue
            try:
                sample = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise Wrong(f"{path}: line {number} is no JSON: {error}") from None
            yield number, sample


class Samples:
    """Ids of all samples, and which of them are learnt."""

    def __init__(self, tokenizer, options):
        self.tokenizer, self.options = tokenizer, options
        self.template = _chat.template_of(options.chat) if options.chat else None
        end = tokenizer.token_to_id(options.end) if options.end else None
        if options.end and end is None:
            raise Wrong(f"--end {options.end} is no token of {options.tokenizer}")
        self.end = [end] if options.end else []

    def of_chat(self, sample):
        ids, learnt = _chat.ids_of(self.tokenizer, _chat.pieces_of(self.template, sample[self.options.field]))
        return ids, learnt, bool(learnt) and learnt[-1]

    def of_text(self, sample):
        prompt, text = sample[self.options.prompt] if self.options.prompt else None, sample[self.options.field]
        given = self.tokenizer.encode(prompt).ids if prompt is not None else []
        said = self.tokenizer.encode(text, add_special_tokens=prompt is None).ids
        return given + said, [False] * len(given) + [True] * len(said), True

    def check(self, sample, where):
        for field in filter(None, (self.options.prompt, self.options.field)):
            wanted = list if self.template else str
            if not isinstance(sample, dict) or not isinstance(sample.get(field), wanted):
                raise Wrong(f"{where} has no {'list' if self.template else 'text'} '{field}'; --field and --prompt say what it is called")

    def __iter__(self):
        """(where, ids to read, targets); both are empty where there is no token to predict."""
        for path in self.options.text:
            for number, sample in lines_of(path, self.options):
                where = f"{path}: line {number}"
                self.check(sample, where)
                try:
                    ids, learnt, ends = self.of_chat(sample) if self.template else self.of_text(sample)
                except _chat.WrongChat as error:
                    raise Wrong(f"{where}: {error}") from None
                ids = (ids + self.end)[:self.options.longest]
                learnt = (learnt + [ends] * len(self.end))[:self.options.longest]
                targets = [token if learns else IGNORED for token, learns in zip(ids[1:], learnt[1:])]
                counts = any(target != IGNORED for target in targets)
                yield (where, ids[:-1], targets) if counts else (where, [], [])


def write_line(out, options, ids, targets, positions, segments):
    sample = {options.ids: ids, options.target: targets}
    if options.mask:
        sample[options.mask] = [int(number > 0) for number in segments]
    if options.positions:
        sample[options.positions] = positions
    if options.segments:
        sample[options.segments] = segments
    out.write(json.dumps(sample) + "\n")


def write_packed(out, options, packed):
    """How many rows of samples, whose ids and targets are arrays."""
    rows = _pack.rows_of([len(ids) for ids, _ in packed], options.pack, options.seed)
    for row in rows:
        write_line(out, options, *_pack.joined([[values.tolist() for values in packed[i]] for i in row], options.pack, IGNORED))
    return len(rows)


def write(samples, options):
    """Returns the lengths, how many samples were too short for a target, and how many rows they were packed into."""
    lengths, short, packed, rows = [], 0, [], 0
    aside = options.output.with_name(options.output.name + ".part")
    try:
        with open(aside, "w", encoding="utf-8") as out:
            for where, ids, targets in samples:
                if not ids:
                    short += 1
                    continue
                lengths.append(len(ids))
                if options.pack is None:
                    write_line(out, options, ids, targets, list(range(len(ids))), [1] * len(ids))
                elif len(ids) > options.pack:
                    raise Wrong(f"{where} has {len(ids)} tokens to read, --pack makes rows of {options.pack}: --longest {options.pack + 1} cuts it")
                else:
                    packed.append((numpy.array(ids, numpy.int32), numpy.array(targets, numpy.int32)))
            if not lengths:
                raise Wrong(f"{', '.join(map(str, options.text))}: no sample has a token to predict")
            if packed:
                rows = write_packed(out, options, packed)
        os.replace(aside, options.output)
    finally:
        aside.unlink(missing_ok=True)
    return lengths, short, rows


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


def open_tokenizer(path):
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise Wrong("it needs the package tokenizers: pip install tokenizers") from None
    try:
        tokenizer = Tokenizer.from_file(path)
    except Exception as error:  # whatever the package throws
        raise Wrong(f"{path}: {error}") from None
    tokenizer.no_truncation()  # which files may ask for
    tokenizer.no_padding()
    return tokenizer


def main(words):
    options = parse(words)
    try:
        tokenizer = open_tokenizer(options.tokenizer)
        if any(path.resolve() == options.output.resolve() for path in options.text):
            raise Wrong(f"-o {options.output} is one of the texts")
        lengths, short, rows = write(Samples(tokenizer, options), options)
    except (Wrong, _chat.WrongChat, OSError, UnicodeDecodeError) as error:
        sys.exit(f"sluice tokenize: error: {error}")
    print(f"{options.output}: {len(lengths)} samples, {sum(lengths)} tokens, {max(lengths)} in the longest"
          + (f"; {short} had no token to predict and were left out" if short else ""))
    if options.pack is not None:
        padding = 100 * (1 - sum(lengths) / (rows * options.pack))
        print(f"packed: {rows} rows of {options.pack} tokens (--dim tokens={options.pack}), of which {padding:.1f} % is padding")
        return
    extents, padding = least_padding(lengths, options.buckets)
    print(f"shapes that fill up least: --dim tokens={','.join(map(str, extents))}, of which {padding:.1f} % is padding")
