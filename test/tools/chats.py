# SPDX-License-Identifier: Apache-2.0
"""For chats.test: `make FOLDER` writes a tokenizer, templates and chats, `check FOLDER` looks at the lines that were made of them, beside those of transformers."""
import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

MARKS = ["<|im_start|>", "<|im_end|>", "<s>", "<end>"]
WORDS = ["<unk>", *MARKS, "system", "user", "assistant", "be", "short", "what", "is", "this", "a", "cat", "dog", "no", "yes", "USER", "BOT", ":"]
CHATML = """{% for m in messages %}<|im_start|>{{ m['role'] }}
{% if m['role'] == 'assistant' %}{% generation %}{{ m['content'] }}<|im_end|>
{% endgeneration %}{% else %}{{ m['content'] }}<|im_end|>
{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
PLAIN = """{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}{{ bos_token }}{% for m in messages %}
{{ 'USER : ' if m.role == 'user' else 'BOT : ' }}{{ m.content | trim }} {% endfor %}{% if add_generation_prompt %}BOT : {% endif %}"""
FORGETS = """{% for m in messages %}{% if m.role != 'assistant' or loop.last %}<|im_start|>{{ m.content }}<|im_end|>{% endif %}{% endfor %}"""
JOINS = """{% for m in messages %}{{ m.content }}{% endfor %}"""


def turn(role, content):
    return {"role": role, "content": content}


CHATS = [[turn("system", "be short"), turn("user", "what is this"), turn("assistant", "a cat"), turn("user", "a dog"), turn("assistant", "no")],
         [turn("user", "is this a dog"), turn("assistant", "yes this is a dog"), turn("user", "yes")],
         [turn("user", "what")]]


def lines(chats):
    return "".join(json.dumps({"messages": chat}) + "\n" for chat in chats)


def make(folder):
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens([AddedToken(mark, special=True, normalized=False) for mark in MARKS])
    tokenizer.enable_truncation(4)  # which a file may say and nobody here wants
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "chats.jsonl").write_text(lines(CHATS))
    (folder / "two.jsonl").write_text(lines(CHATS[1:]))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": CHATML}))
    (folder / "plain").mkdir()
    (folder / "plain/tokenizer_config.json").write_text(json.dumps({"bos_token": {"content": "<s>"}, "eos_token": None}))
    (folder / "plain/chat_template.jinja").write_text(PLAIN)
    for name, template in (("forgets", FORGETS), ("joins", JOINS), ("broken", "{% for %}")):
        (folder / f"{name}.jinja").write_text(template)
    for name, line in (("empty", '{"messages": []}'), ("text", '{"messages": "hello"}'), ("role", '{"messages": [{"content": "a"}]}'), ("none", '{"messages": [{"role": "user", "content": null}]}'),
                       ("list", "[1]"), ("deep", "[" * 100000)):
        (folder / f"bad-{name}.jsonl").write_text(lines(CHATS[:1]) + line + "\n")
    draw = random.Random(5)
    (folder / "short.jsonl").write_text("".join(json.dumps({"text": " ".join(draw.choices(WORDS[5:], k=draw.randint(2, 17)))}) + "\n" for _ in range(60)))


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def check_chats(folder):
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    whole = PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template=CHATML)
    wanted = []
    for chat in CHATS[:2]:  # the last has nothing that is learnt
        found = whole.apply_chat_template(chat, tokenize=True, return_dict=True, return_assistant_tokens_mask=True)
        ids, learnt = found["input_ids"], found["assistant_masks"]
        wanted.append({"input_ids": ids[:-1], "target": [token if learns else -100 for token, learns in zip(ids[1:], learnt[1:])]})
    assert sum(target != -100 for line in wanted for target in line["target"]) == 3 + 2 + 6, wanted
    assert read(folder / "jinja.jsonl") == wanted, (read(folder / "jinja.jsonl"), wanted)
    assert read(folder / "named.jsonl") == wanted
    plain = read(folder / "plain.jsonl")
    words = [[WORDS[token] for token in line["input_ids"]] for line in plain]
    assert words[0] == "<s> USER : is this a dog BOT : yes this is a dog USER :".split(), words
    assert [WORDS[token] for token in plain[0]["target"] if token != -100] == "yes this is a dog".split(), plain


def check_packs(folder):
    alone = read(folder / "alone.jsonl")
    for name in ("packed", "again", "other"):
        rows, seen = read(folder / f"{name}.jsonl"), []
        for row in rows:
            assert {len(values) for values in row.values()} == {24}, row
            for number in range(1, max(row["segments"]) + 1):
                places = [i for i in range(24) if row["segments"][i] == number]
                assert [row["places"][i] for i in places] == list(range(len(places)))
                seen.append(tuple((row["input_ids"][i], row["target"][i]) for i in places))
            fill = [i for i in range(24) if row["segments"][i] == 0]
            assert fill == list(range(24 - len(fill), 24)) and all(row["target"][i] == -100 and row["mask"][i] == 0 for i in fill)
        assert sorted(seen) == sorted(tuple(zip(line["input_ids"], line["target"])) for line in alone), name
        tokens = sum(len(line["input_ids"]) for line in alone)
        assert len(rows) * 24 < 1.1 * tokens, (len(rows), tokens)
    assert read(folder / "packed.jsonl") == read(folder / "again.jsonl") != read(folder / "other.jsonl")


def check_rows():
    from sluice._pack import rows_of
    draw = random.Random(7)
    for _ in range(200):
        lengths = [draw.randint(1, 12) for _ in range(draw.randint(1, 40))]
        rows = rows_of(lengths, 12, draw.randint(0, 9))
        assert sorted(i for row in rows for i in row) == list(range(len(lengths)))
        used = sorted(sum(lengths[i] for i in row) for row in rows)
        assert used[-1] <= 12 and (len(used) < 2 or used[0] + used[1] > 12), used  # no two rows would go into one


def check(folder):
    check_chats(folder)
    check_packs(folder)
    check_rows()
    print("chats and rows are right")


{"make": make, "check": check}[sys.argv[1]](pathlib.Path(sys.argv[2]))
