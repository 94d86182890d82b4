# SPDX-License-Identifier: Apache-2.0
"""Copies what tools/site.sh makes a site of: pages, their pictures and the files that they link to. A link to a folder leads to its README; where it has
none the words stay without a link, for the site has no sources.

    pages.py FOLDER"""
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"\[([^][]*)\]\(([^()\s:#]+)((?:#[^()\s]*)?)\)")


def linked(page, text, copy):
    """`text` of a page with links that hold on the site; files that are no pages are given to `copy`."""
    def one(match):
        words, target, anchor = match.groups()
        place = (page.parent / target).resolve()
        if place.is_dir():
            return f"[{words}]({target}/README.md)" if (place / "README.md").exists() else words
        if place.is_file() and place.suffix != ".md":
            copy(place)
        return match[0]
    return LINK.sub(one, text)


def separated(text):
    """`text` with an empty line before each list and table, which GitHub needs none of and Markdown's first rules ask for."""
    lines, fenced = [], False
    for line in text.split("\n"):
        begins = next((mark for mark in ("- ", "|") if line.startswith(mark)), None)
        if begins and not fenced and lines and lines[-1].strip() and not lines[-1].startswith((begins, "  ")):
            lines.append("")
        fenced ^= line.startswith("```")
        lines.append(line)
    return "\n".join(lines)


def main():
    out = pathlib.Path(sys.argv[1])

    def place_of(file):
        place = out / file.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]:
        text = linked(page, page.read_text(encoding="utf-8"), lambda file: shutil.copy(file, place_of(file)))
        place_of(page).write_text(separated(text), encoding="utf-8")


main()
