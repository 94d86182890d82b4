# SPDX-License-Identifier: Apache-2.0
"""Chats as text: the turns of a conversation, in the form that a model was trained on, in pieces that are learnt or given.

A template is one of those below by its name, or the Jinja template of a tokenizer_config.json (or .jinja file) as Hugging Face's models bring it, which needs the
package jinja2. What is learnt is all that the template writes for a turn of the assistant."""
import json
import pathlib

LEARNT = "assistant"


class WrongChat(Exception):
    """What is wrong with a template, or with the messages of a line."""


def _chatml(role, content):
    return f"<|im_start|>{role}\n", f"{content}<|im_end|>\n"


def _llama3(role, content):
    return f"<|start_header_id|>{role}<|end_header_id|>\n\n", f"{content.strip()}<|eot_id|>"


def _zephyr(role, content):
    return f"<|{role}|>\n", f"{content}</s>\n"


# What a chat begins with, a turn in two parts, and the token that ends it.
NAMED = {"chatml": ("", _chatml, "<|im_end|>"), "llama3": ("<|begin_of_text|>", _llama3, "<|eot_id|>"), "zephyr": ("", _zephyr, "</s>")}


class NamedTemplate:
    def __init__(self, name):
        self.begin, self.turn, end = NAMED[name]
        self.ends = [end]

    def render(self, messages, asks):
        """The text of messages; `asks`: with what an answer begins with."""
        text = self.begin + "".join("".join(self.turn(message["role"], message["content"])) for message in messages)
        return text + (self.turn(LEARNT, "")[0] if asks else "")


class JinjaTemplate:
    def __init__(self, text, tokens, where):
        try:
            from jinja2 import TemplateSyntaxError, nodes
            from jinja2.ext import Extension
            from jinja2.sandbox import ImmutableSandboxedEnvironment
        except ImportError:
            raise WrongChat(f"{where}: a template needs the package jinja2: pip install jinja2; without it there are {', '.join(NAMED)}") from None

        class Generation(Extension):
            """{% generation %} of transformers marks what an assistant said; here turns tell that."""
            tags = {"generation"}

            def parse(self, parser):
                line = next(parser.stream).lineno
                return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True)).set_lineno(line)

        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"])
        environment.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
        environment.globals["raise_exception"] = self._refuse
        self.tokens = tokens
        self.ends = [tokens["eos_token"]] if "eos_token" in tokens else []
        try:
            self.template = environment.from_string(text)
        except TemplateSyntaxError as error:
            raise WrongChat(f"{where}: line {error.lineno} of the template: {error.message}") from None

    @staticmethod
    def _refuse(message):
        raise WrongChat(f"the template refuses it: {message}")

    def render(self, messages, asks):
        try:
            return self.template.render(messages=messages, add_generation_prompt=asks, **self.tokens)
        except WrongChat:
            raise
        except Exception as error:  # whatever a template does
            raise WrongChat(f"the template fails: {error}") from None


def _json_of(path):
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise WrongChat(f"{path} is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise WrongChat(f"{path} is no JSON object")
    return found


def _tokens_of(config):
    """bos_token and others, which are texts or objects."""
    found = {name: value.get("content") if isinstance(value, dict) else value for name, value in config.items() if name.endswith("_token")}
    return {name: value for name, value in found.items() if isinstance(value, str)}


def template_of(word):
    """By the word after --chat."""
    if word in NAMED:
        return NamedTemplate(word)
    path = pathlib.Path(word)
    beside = path.with_name("tokenizer_config.json")
    if path.suffix == ".jinja":
        return JinjaTemplate(path.read_text(encoding="utf-8"), _tokens_of(_json_of(beside)) if beside.exists() else {}, path)
    if path.suffix != ".json":
        raise WrongChat(f"--chat {word}: it is {', '.join(NAMED)}, a tokenizer_config.json or a .jinja file")
    config = _json_of(path)
    template = config.get("chat_template")
    if isinstance(template, list):  # several by name
        template = next((one.get("template") for one in template if isinstance(one, dict) and one.get("name") == "default"), None)
    if template is None and (jinja := path.with_name("chat_template.jinja")).exists():
        template = jinja.read_text(encoding="utf-8")
    if not isinstance(template, str):
        raise WrongChat(f"{path} has no chat_template, and no chat_template.jinja stands beside it; --chat {', '.join(NAMED)} are known without")
    return JinjaTemplate(template, _tokens_of(config), path)


def checked(messages):
    """The list itself. Raises WrongChat for what is no list of turns."""
    if not isinstance(messages, list) or not messages:
        raise WrongChat('no list of messages, as [{"role": "user", "content": "..."}]')
    for number, message in enumerate(messages, 1):
        for key in ("role", "content"):
            if not isinstance(message, dict) or not isinstance(message.get(key), str):
                raise WrongChat(f"message {number} has no text '{key}'")
    return messages


def pieces_of(template, messages):
    """(text, whether it is learnt) of a whole chat, one after the other."""
    pieces, done = [], ""
    for count, message in enumerate(checked(messages), 1):
        if message["role"] != LEARNT:
            continue
        for messages_so_far, asks, learnt in ((messages[:count - 1], True, False), (messages[:count], False, True)):
            text = template.render(messages_so_far, asks)
            if not text.startswith(done):
                raise WrongChat(f"the template writes what stands before message {count} in another way once it follows, so that nobody can tell what is learnt of it; "
                                "another template, or a line for each turn, can")
            pieces.append((text[len(done):], learnt))
            done = text
    whole = template.render(messages, False)
    if not whole.startswith(done):
        raise WrongChat("the template writes the last turn in another way when others follow it")
    return pieces + [(whole[len(done):], False)]


def ids_of(tokenizer, pieces):
    """Ids of all pieces, and of each whether it is learnt. Raises WrongChat where the whole text has other tokens."""
    ids, learnt = [], []
    for text, learns in pieces:
        own = tokenizer.encode(text, add_special_tokens=False).ids
        ids += own
        learnt += [learns] * len(own)
    whole = tokenizer.encode("".join(text for text, _ in pieces), add_special_tokens=False).ids
    if ids != whole:
        at = next((i for i, (one, other) in enumerate(zip(ids, whole)) if one != other), min(len(ids), len(whole)))
        raise WrongChat(f"the turns have {len(ids)} tokens one by one and {len(whole)} as one text, of which token {at + 1} is another: the tokenizer joins what the "
                        "template keeps apart, as where it has the template's marks not as tokens of their own")
    return ids, learnt
