#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the #include lines of src/ against the layers and doors of cmake/rooms.cmake.

Also checks what is promised of names and sizes: no banned names, includes as whole paths from src/, at
most 12 files that see Torch, files under 1,000 lines, at most 30 files in a folder beside its tests.
usage: check_layers.py SOURCE_ROOT
"""
import collections
import pathlib
import re
import sys

DOOR_HEADERS = {
    "arrow": r"<(arrow/(?!flight/)|parquet/)",
    "flight": r"<arrow/flight/",
    "torch": r"<(torch|ATen|c10)/",
    "onednn": r"<(oneapi/dnnl|dnnl)",
    "mpi": r"<mpi\.h>",
    "nccl": r"<nccl\.h>",
    "highs": r"highs_c_api\.h",
    "xgboost": r"<xgboost/",
    "cuda": r"<(cuda|nvrtc)",
    "cli11": r"<CLI/",
    "toml": r"<toml\+\+/",
}
BANNED_NAMES = re.compile(r"(^|[_/])(utils?|common|helpers?|misc|core|manager)([_./]|$)")
ENVIRONMENT_ROOMS = ["cli", "config", "program"]
MAX_TORCH_FILES = 12
MAX_LINES = 1000
MAX_FILES = 30
# A file, or two, for each member of a list.
LISTS = {
    "bench/kernels": "cases",
    "kernels/embedding_pool": "kernel templates",
    "model": "models",
    "preprocess/ops": "operations",
}


def read_tables(cmake: str):
    rooms = dict(
        (name, int(layer))
        for name, layer in re.findall(r"(\w+)=(\d+)", re.search(r"set\(RECMILL_ROOMS(.*?)\)", cmake, re.S)[1])
    )
    doors = {m[0]: m[1].split() for m in re.findall(r"set\(RECMILL_DOOR_(\w+) ([^)]*)\)", cmake)}
    return rooms, doors


def is_test_file(path: pathlib.Path) -> bool:
    return path.stem.endswith(("_test", "_fuzz")) or "testing" in path.parts


def full_folders(paths):
    counts = collections.Counter(path.parent.as_posix() for path in paths if not is_test_file(path))
    return [f"{folder}: {count} files beside its tests, at most {MAX_FILES}"
            for folder, count in sorted(counts.items()) if count > MAX_FILES and folder not in LISTS]


def allowed_through(door_rooms, path):
    folder = path.parent.as_posix()
    return any(folder == room or folder.startswith(room + "/") for room in door_rooms)


def main(root: pathlib.Path) -> int:
    src = root / "src"
    rooms, doors = read_tables((root / "cmake/rooms.cmake").read_text())
    problems, torch_files = [], []
    files = sorted(p for p in src.rglob("*") if p.suffix in {".h", ".cc", ".cuh", ".cu", ".inc"})
    for file in files:
        path = file.relative_to(src)
        room = path.parts[0]
        is_test = is_test_file(path)
        lines = file.read_text().splitlines()
        if BANNED_NAMES.search(path.with_suffix("").as_posix()):
            problems.append(f"{path}: a name that says nothing")
        if len(lines) > MAX_LINES:
            problems.append(f"{path}: {len(lines)} lines, at most {MAX_LINES}")
        if room not in rooms:
            problems.append(f"{path}: '{room}' is no room of cmake/rooms.cmake")
            continue
        for number, line in enumerate(lines, 1):
            if re.search(r"\bgetenv\b", line) and room not in ENVIRONMENT_ROOMS and not is_test:
                problems.append(f"{path}:{number}: only {', '.join(ENVIRONMENT_ROOMS)} read the environment")
            if re.search(r"std::random_device", line):
                problems.append(f"{path}:{number}: random_device cannot be replayed")
            match = re.match(r'\s*#include ([<"][^>"]+[>"])', line)
            if not match:
                continue
            header = match[1]
            if header.startswith('"'):
                target = header.strip('"')
                target_room = target.split("/")[0]
                if not (src / target).exists():
                    if not target.startswith("generated/"):
                        problems.append(f"{path}:{number}: \"{target}\" is no path from src/")
                elif not is_test and target_room != room and rooms[target_room] >= rooms[room]:
                    problems.append(
                        f"{path}:{number}: {room} (layer {rooms[room]}) may not include "
                        f"{target_room} (layer {rooms[target_room]})")
            for door, pattern in DOOR_HEADERS.items():
                if re.search(pattern, header):
                    if door == "torch":
                        torch_files.append(path)
                    if not is_test and not allowed_through(doors[door], path):
                        problems.append(f"{path}:{number}: {door} has its door in {doors[door]}")
    problems += full_folders(file.relative_to(src) for file in files)
    torch_units = {p for p in torch_files if p.suffix == ".cc"}
    if len(torch_units) > MAX_TORCH_FILES:
        problems.append(f"{len(torch_units)} translation units see Torch, at most {MAX_TORCH_FILES}")
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"layers: {len(files)} files, {len(torch_units)} see Torch, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: check_layers.py SOURCE_ROOT")
    sys.exit(main(pathlib.Path(sys.argv[1])))
