#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the repository's pages: links lead somewhere, paths that a page names are there, and each folder of src/ has a
README of at most 40 lines that names every file beside tests.

usage: check_pages.py SOURCE_ROOT
"""
import pathlib
import re
import subprocess
import sys

from check_layers import is_test_file

MAX_README_LINES = 40
SOURCES = {".h", ".cc", ".cuh", ".cu", ".py"}


def anchors(page: pathlib.Path) -> set:
    """Anchors of the page's headings, as hosts of repositories make them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def dead_links(page: pathlib.Path, root: pathlib.Path) -> list:
    problems = []
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(#[^)\s]*)?\)", text):
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        other = page.parent / target if target else page
        if not other.exists():
            problems.append(f"{page.relative_to(root)}: {target} is not there")
        elif anchor and other.suffix == ".md" and anchor[1:] not in anchors(other):
            problems.append(f"{page.relative_to(root)}: {target} has no heading {anchor}")
    return problems


def wrong_paths(page: pathlib.Path, root: pathlib.Path) -> list:
    """Paths from the root, in backticks, that are not there; of `src/bench/x/` or `src/model/x.h`, which stand for what
    a reader would write, the folder before."""
    problems = []
    for path in re.findall(r"`((?:src|bench|cmake|docs|examples|tools|workloads)/[\w./{},-]*)`", page.read_text()):
        known = []
        for part in path.split("/"):
            if re.fullmatch(r"(\w+_)?x([._{-].*)?|[A-Z]+(\.[a-z]+)?", part) and not (root / path).exists():
                break
            known.append(part)
        listed = re.fullmatch(r"(.*)\{(.*)\}(.*)", "/".join(known))
        named = [listed[1] + one + listed[3] for one in listed[2].split(",")] if listed else ["/".join(known)]
        problems += [f"{page.relative_to(root)}: {one} is not there" for one in named if not (root / one).exists()]
    return problems


def unnamed_files(folder: pathlib.Path, text: str) -> list:
    """Files of the folder that its README names neither by name nor by a pattern such as `cuda_*.cuh`."""
    names = set(re.findall(r"[\w*.-]+", text))
    patterns = [re.compile(name.replace(".", r"\.").replace("*", ".*")) for name in names if "*" in name]

    def is_named(file):
        return any(name in names for name in (file.name, file.stem, file.stem + ".h", file.stem + ".cc")) or any(
            pattern.fullmatch(other) for pattern in patterns for other in (file.name, file.stem))

    return [file.name for file in sorted(folder.iterdir())
            if file.suffix in SOURCES and not is_test_file(pathlib.Path(file.name)) and not is_named(file)]


def check_folder(folder: pathlib.Path, root: pathlib.Path) -> list:
    readme = folder / "README.md"
    name = readme.relative_to(root)
    if not readme.exists():
        return [f"{name}: is not there"]
    text = readme.read_text()
    lines = len(text.splitlines())
    problems = [f"{name}: {lines} lines, at most {MAX_README_LINES}"] if lines > MAX_README_LINES else []
    return problems + [f"{name}: does not name {file}" for file in unnamed_files(folder, text)]


def main(root: pathlib.Path) -> int:
    tracked = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"], cwd=root,
                             capture_output=True, text=True)
    pages = [root / line for line in tracked.stdout.splitlines() if (root / line).exists()]
    if tracked.returncode != 0:  # no checkout
        pages = [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("src/**/*.md")]
    folders = [root / "src"] + [path for path in sorted((root / "src").rglob("*"))
                                if path.is_dir() and "testing" not in path.parts]
    now = [page for page in pages if not page.is_relative_to(root / "docs/upgrading")
           and not page.is_relative_to(root / "bench/history")]  # those tell of before
    problems = [problem for page in pages for problem in dead_links(page, root)]
    problems += [problem for page in now for problem in wrong_paths(page, root)]
    problems += [problem for folder in folders for problem in check_folder(folder, root)]
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"pages: {len(pages)} pages, {len(folders)} folders, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: check_pages.py SOURCE_ROOT")
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
