#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes train.txt and test.txt: short sentences of a language of some forty words, whose parts depend on one another (one dog sees, two dogs see)."""
import pathlib
import random

NOUNS = ["dog", "cat", "bird", "horse", "child", "sailor", "gardener", "river", "mountain", "garden"]
ADJECTIVES = ["small", "old", "quiet", "green", "happy", "distant", "strange"]
VERBS = ["see", "follow", "find", "hear", "remember", "paint", "love"]
ENDS = ["in the morning", "every evening", "before it rains", "without a word", "from far away"]
PLURALS = {"child": "children"}


def thing(draw: random.Random) -> tuple[str, bool]:
    """A noun with what stands before it, and whether it is of several."""
    noun, several = draw.choice(NOUNS), draw.random() < 0.4
    words = [draw.choice(["two", "three", "many"] if several else ["the", "one", "every"])] + ([draw.choice(ADJECTIVES)] if draw.random() < 0.6 else [])
    return " ".join([*words, PLURALS.get(noun, noun + "s") if several else noun]), several


def sentence(draw: random.Random) -> str:
    subject, several = thing(draw)
    verb = draw.choice(VERBS)
    words = [subject, verb if several else verb + "s", thing(draw)[0]] + ([draw.choice(ENDS)] if draw.random() < 0.5 else [])
    return " ".join(words).capitalize() + "."


for name, count, seed in (("train.txt", 6000, 1), ("test.txt", 300, 2)):
    draw = random.Random(seed)
    text = "".join(sentence(draw) + ("\n" if i % 5 == 4 else " ") for i in range(count))
    pathlib.Path(name).write_text(text)
    print(f"{name}: {len(text)} bytes")
