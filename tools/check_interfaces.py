#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that no interface of src/ asks for more than eight functions of who implements it, or says why.

Counted are pure virtual functions that a class declares itself. A class with more has, in the comment above
it or beside its name, a sentence that begins with "More than eight functions:".
usage: check_interfaces.py SOURCE_ROOT
"""
import pathlib
import re
import sys

MOST = 8
REASON = "More than eight functions:"
TOKENS = re.compile(
    r"(?P<skip>//[^\n]*|/\*.*?\*/|R\"(?P<mark>[^( ]*)\(.*?\)(?P=mark)\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])')"
    r"|(?P<opens>\b(?:class|struct)\s+(?:\[\[\w+\]\]\s+)?(?P<name>\w+)(?:\s+final)?(?:\s*:[^:{};()][^{};()]*)?\s*\{)"
    r"|(?P<pure>\bvirtual\b[^;{}]*=\s*0\s*;)"
    r"|(?P<brace>[{}])", re.S)


def comment_of(text: str, begin: int, end: int) -> str:
    """The lines of // right above the line of `begin`, and the one behind `end`, as one line of prose."""
    lines = text[:text.rfind("\n", 0, begin) + 1].splitlines()
    comment = [text[end:].partition("\n")[0]]
    while lines and lines[-1].lstrip().startswith("//"):
        comment.insert(0, lines.pop().lstrip().lstrip("/").strip())
    return " ".join(comment)


def interfaces(text: str):
    """(name, pure virtual functions, comment) of each class of a file that has such functions."""
    found, open_braces = [], []  # of classes: their entries; of others: None
    for token in TOKENS.finditer(text):
        if token["opens"]:
            found.append([token["name"], 0, comment_of(text, token.start(), token.end())])
            open_braces.append(found[-1])
        elif token["pure"]:
            inner = next((entry for entry in reversed(open_braces) if entry), None)
            if inner:
                inner[1] += 1
        elif token["brace"] == "{":
            open_braces.append(None)
        elif token["brace"] == "}" and open_braces:
            open_braces.pop()
    return [tuple(entry) for entry in found if entry[1] > 0]


def main(root: pathlib.Path) -> int:
    count, problems = 0, []
    for file in sorted(p for p in (root / "src").rglob("*") if p.suffix in {".h", ".cc"}):
        for name, functions, comment in interfaces(file.read_text()):
            count += 1
            if functions > MOST and REASON not in comment:
                problems.append(f"{file.relative_to(root)}: {name} asks for {functions} functions, at most {MOST}; "
                                f"cut it, or say in its comment: \"{REASON} ...\"")
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"interfaces: {count}, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: check_interfaces.py SOURCE_ROOT")
    sys.exit(main(pathlib.Path(sys.argv[1])))
