#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The functions and classes of C++ files, by their braces, for lint.py."""
import re
from dataclasses import dataclass

from lint_includes import line_of


@dataclass
class Function:
    path: str
    name: str  # as written in front of the parameters: FusedOp::verify
    argument: str  # what is in the parentheses: ConvOp of INFER(ConvOp)
    first: int
    last: int
    text: str  # with the comment above it
    parameters: int = 0  # stream and tensors of a kernel's call aside

    def length(self):
        return self.last - self.first + 1


@dataclass
class Class:
    path: str
    name: str
    first: int
    last: int  # of its body: member functions that are defined outside are functions of their files

    def length(self):
        return self.last - self.first + 1


TOKENS = re.compile(
    r"""//[^\n]*|/\*.*?\*/                           # comments
      | ^[ \t]*\#(?:\\\n|[^\n])*                      # directives
      | R"(?P<raw>\w*)\(.*?\)(?P=raw)"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'
      | [{}();]""",
    re.S | re.M | re.X)
TEMPLATE = re.compile(r"\s*(?:(?:public|private|protected):\s*)*(?:template\s*<[^()]*?>\s*(?=[\w:]|\[\[))*", re.S)


def opens_function(head):
    """Whether a brace after `head`, all that stands between the last statement and it, begins a function."""
    head = head[TEMPLATE.match(head).end():]
    if re.match(r"(inline\s+)?(namespace|class|struct|union|enum|extern)\b", head) and not re.match(r"struct \w+ \w+\(", head):
        return False
    return "(" in head and not head.rstrip().endswith("=")


def class_of(head):
    """The name of the class or struct whose body a brace after `head` begins; "" where it begins something else."""
    named = re.match(r"(?:class|struct)\s+([\w:]+)", head[TEMPLATE.match(head).end():])
    return named[1] if named else ""


def functions_of(path, text, report):
    """All functions outside of others, by their braces, and the classes around them; lambdas and local classes belong to the function around
    them."""
    lines = text.split("\n")
    result, classes, braces, parentheses, start = [], [], [], 0, 0
    for token in TOKENS.finditer(text):
        mark = token[0]
        if mark == "(":
            parentheses += 1
        elif mark == ")":
            parentheses -= 1
            call = re.match(r"(?:\s|//[^\n]*\n)*[A-Z_]+\(", text[start:])
            if parentheses == 0 and call and not re.match(r"\s*\{", text[token.end():]):
                start = token.end()  # a macro that stands for whole functions
        elif mark == "{":
            head = re.sub(r"//[^\n]*|/\*.*?\*/", "", text[start:token.start()], flags=re.S)
            within = any(kind for kind, *_ in braces) or parentheses > 0
            kind = "" if within else "list" if head.rstrip().endswith("=") else "function" if opens_function(head) else ""
            braces.append((kind, "" if within or kind else class_of(head), start, parentheses))
            if not within:
                start = token.end()
        elif mark == "}":
            if not braces:
                report(path, line_of(text, token.start()), "has a brace that lint cannot match; open and close it in one branch of #if")
                return result, classes
            kind, class_name, begin, parentheses = braces.pop()
            if class_name:
                classes.append(Class(path, class_name, first_line(text, begin), line_of(text, token.end())))
            if kind == "function" and re.match(r"\s*[,{]", text[token.end():token.end() + 200]):
                start = begin  # Name() : member{...}, other{...} { goes on
            elif kind == "function":
                result.append(function(path, text, lines, begin, token.end()))
                start = token.end()
            elif not any(kind for kind, *_ in braces) and parentheses == 0:
                start = token.end()
        elif mark == ";":
            if parentheses == 0:
                start = token.end()
        elif not text[start:token.start()].strip():
            start = token.end()  # a comment or directive between statements
    if braces:
        report(path, len(lines), "has a brace that lint cannot match; open and close it in one branch of #if")
    return result, classes


def first_line(text, begin):
    """Of what begins after the blanks from `begin` on."""
    return line_of(text, begin + len(text[begin:]) - len(text[begin:].lstrip()))


OPERAND = re.compile(r"(const )?(Stream|Tensor) ?&")  # what a kernel is run on: as many as its op has


def parameters_of(text):
    """How many parameters, operands aside, the list has whose opening parenthesis is in front of `text`."""
    depth, begin, parameters = 0, 0, []
    for mark in re.finditer(r"[()\[\]{}<>,]", re.sub(r"//[^\n]*", lambda comment: " " * len(comment[0]), text)):
        if mark[0] in "([{<":
            depth += 1
        elif mark[0] != ",":
            depth -= 1
        if depth < 0 or (depth == 0 and mark[0] == ","):
            parameters.append(text[begin:mark.start()].strip())
            begin = mark.end()
        if depth < 0:
            break
    return sum(bool(parameter) and not OPERAND.match(parameter) for parameter in parameters)


def function(path, text, lines, begin, end):
    begin += len(text[begin:]) - len(text[begin:].lstrip())
    first, last = line_of(text, begin), line_of(text, end)
    comment = first - 1
    while comment > 0 and lines[comment - 1].lstrip().startswith("//"):
        comment -= 1
    head = text[begin:end]
    head = head[TEMPLATE.match(head).end():]
    name = re.search(r"([\w:~]+(?:<[^()]*>)?|operator[^(]+)\s*\(\s*(\w*)", head)
    return Function(path, name[1], name[2], first, last, "\n".join(lines[comment:last]), parameters_of(head[name.start(2):]))
