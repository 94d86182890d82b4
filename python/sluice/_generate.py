# SPDX-License-Identifier: Apache-2.0
"""python -m sluice generate: a trained program goes on with a text, in words.

Turns the text to ids, starts the program with --generate, and writes what it adds as it comes. Needs the package tokenizers."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from . import _chat
from ._tokenize import Wrong, open_tokenizer


def parse(words):
    parser = argparse.ArgumentParser(prog="sluice generate", usage="sluice generate --tokenizer tokenizer.json [options] PROGRAM [its flags] TEXT",
                                     description="Goes on with a text by a trained program, whose flags (--resume, --tokens, --temperature and others) stand between it and the text.")
    parser.add_argument("--tokenizer", required=True, help="a tokenizer.json")
    parser.add_argument("--chat", metavar="TEMPLATE", help=f"the text is a user's turn, which is answered: {', '.join(_chat.NAMED)}, a tokenizer_config.json or a .jinja file")
    parser.add_argument("--end", help="a token that ends the answer (default: with --chat that of the template, else none)")
    parser.add_argument("--ids", default="input_ids", help="what the model calls its ids (default input_ids)")
    for name, what in (("mask", "its mask"), ("positions", "the positions of tokens"), ("segments", "the numbers of samples in a row")):
        parser.add_argument(f"--{name}", help=f"what the model calls {what} (default: it has none)")
    parser.add_argument("program", metavar="PROGRAM", help="a program that sluicec made, and its flags")
    parser.add_argument("rest", metavar="TEXT", nargs=argparse.REMAINDER, help="the text; - is standard input")
    options = parser.parse_args(words)
    if not options.rest or (options.rest[-1].startswith("-") and options.rest[-1] != "-"):
        parser.error("the text is missing, which stands behind the program and its flags")
    options.text = sys.stdin.read() if options.rest[-1] == "-" else options.rest[-1]
    options.flags = options.rest[:-1]
    return options


def prompt_of(tokenizer, options):
    """(ids, those of tokens that end the answer)."""
    if not options.chat:
        ids, ends = tokenizer.encode(options.text).ids, []
    else:
        template = _chat.template_of(options.chat)
        text = template.render([{"role": "user", "content": options.text}], True)
        ids, ends = tokenizer.encode(text, add_special_tokens=False).ids, template.ends
    ends = [options.end] if options.end else ends
    stops = [tokenizer.token_to_id(token) for token in ends]
    if options.end and stops == [None]:
        raise Wrong(f"--end {options.end} is no token of {options.tokenizer}")
    if None in stops:
        print(f"sluice generate: note: '{ends[stops.index(None)]}', which ends the template's answers, is no token of {options.tokenizer}: they go on until --tokens", file=sys.stderr)
    if not ids:
        raise Wrong("the text has no token to go on from")
    return ids, [stop for stop in stops if stop is not None]


def line_of(ids, options):
    """Lists beside the ids say how they go on, by two values at least."""
    count = max(2, len(ids))
    beside = {options.mask: [1] * count, options.positions: list(range(count)), options.segments: [1] * count}
    return {options.ids: ids, **{name: values for name, values in beside.items() if name}}


class Writer:
    """Writes the text of ids as far as it is whole: bytes of a character may be tokens of their own."""

    def __init__(self, tokenizer, given, shown):
        self.tokenizer, self.ids = tokenizer, list(given)
        self.done = "" if shown else self.text()

    def text(self):
        return self.tokenizer.decode(self.ids)

    def put(self, last=False):
        text = self.text()
        if last or not text.endswith("\N{REPLACEMENT CHARACTER}"):
            print(text[len(self.done):], end="", flush=True)
            self.done = text

    def add(self, token):
        self.ids.append(token)
        self.put()


def run(options, ids, stops, writer):
    """The program's exit status."""
    with tempfile.TemporaryDirectory() as folder:
        prompts, answers = (pathlib.Path(folder, name) for name in ("prompts.jsonl", "answers.jsonl"))
        prompts.write_text(json.dumps(line_of(ids, options)) + "\n")
        flags = [*options.flags, "--generate", prompts, "--output", answers, "--quiet", "--log", "/dev/stdout", *(word for stop in stops for word in ("--stop", str(stop)))]
        program = options.program if "/" in options.program or not pathlib.Path(options.program).exists() else f"./{options.program}"
        with subprocess.Popen([program, *flags], stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                if not line.endswith("\n"):
                    break  # the program was ended while it wrote
                event = json.loads(line)
                if event["event"] == "token":
                    writer.add(event["id"])
        return process.returncode if process.returncode >= 0 else 128 - process.returncode


def main(words):
    options = parse(words)
    try:
        tokenizer = open_tokenizer(options.tokenizer)
        ids, stops = prompt_of(tokenizer, options)
        writer = Writer(tokenizer, ids, shown=not options.chat)
        status = run(options, ids, stops, writer)
    except (Wrong, _chat.WrongChat, OSError, UnicodeDecodeError) as error:
        sys.exit(f"sluice generate: error: {error}")
    except KeyboardInterrupt:
        print()
        sys.exit(130)
    if status == 0:
        writer.put(last=True)
        print()
    sys.exit(status)
