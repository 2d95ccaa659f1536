#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws docs/rooms.svg: the rooms of src/ in their layers, and an arrow from each room to those that it includes.

An arrow is left out where another way along arrows leads to the same room. Tests are not counted.
usage: draw_rooms.py SOURCE_ROOT [--check]    --check: fails when the picture that is there is old
"""
import collections
import pathlib
import re
import sys

from check_layers import is_test_file, read_tables

WIDTH, ROW, BOX_HEIGHT, BOX_WIDTH, MARGIN = 1000, 78, 34, 128, 70


def read_edges(src: pathlib.Path, rooms: dict) -> dict:
    """Rooms that each room includes; all rooms that have files are keys."""
    edges = collections.defaultdict(set)
    for file in sorted(src.rglob("*")):
        path = file.relative_to(src)
        if file.suffix not in {".h", ".cc", ".cuh", ".inc"} or is_test_file(path):
            continue
        room = path.parts[0]
        edges[room] |= set()
        for header in re.findall(r'^\s*#include "([^"]+)"', file.read_text(), re.M):
            other = header.split("/")[0]
            if other != room and other in rooms and (src / header).exists():
                edges[room].add(other)
    return edges


def without_detours(edges: dict) -> dict:
    """Leaves out each arrow whose end is also reached by a longer way."""
    reached = {}

    def reach(room):
        if room not in reached:
            reached[room] = set()
            for other in edges.get(room, ()):
                reached[room] |= {other} | reach(other)
        return reached[room]

    return {
        room: {o for o in others if not any(o in reach(via) for via in others if via != o)}
        for room, others in edges.items()
    }


def places_of(rooms: dict, edges: dict) -> dict:
    """The middle of each room's box: highest layer first, rooms of a layer in alphabetic order."""
    rows = collections.defaultdict(list)
    for room, layer in rooms.items():
        if room in edges:
            rows[layer].append(room)
    places = {}
    for number, layer in enumerate(sorted(rows, reverse=True)):
        names = sorted(rows[layer])
        step = (WIDTH - MARGIN) / len(names)
        for i, room in enumerate(names):
            places[room] = (MARGIN + step * (i + 0.5), 30 + number * ROW + BOX_HEIGHT / 2)
    return places


def arrow(start: tuple, end: tuple) -> str:
    (x1, y1), (x2, y2) = start, end
    y1, y2 = y1 + BOX_HEIGHT / 2, y2 - BOX_HEIGHT / 2 - 2
    bend = (y2 - y1) / 2
    return (f'<path d="M{x1:.1f} {y1:.1f} C{x1:.1f} {y1 + bend:.1f} {x2:.1f} {y2 - bend:.1f} '
            f'{x2:.1f} {y2:.1f}" marker-end="url(#head)"/>')


def draw(rooms: dict, edges: dict) -> str:
    places = places_of(rooms, edges)
    height = max(y for _, y in places.values()) + BOX_HEIGHT / 2 + 20
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" '
        'font-family="sans-serif" font-size="14">',
        '<title>Rooms of src/ by layer; an arrow goes to what a room includes</title>',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0 8 4 0 8z" fill="#7a8699"/></marker></defs>',
        '<g fill="none" stroke="#7a8699" stroke-width="1">',
    ]
    for room in sorted(edges):
        lines += [arrow(places[room], places[other]) for other in sorted(edges[room])]
    lines.append("</g>")
    for room, (x, y) in sorted(places.items(), key=lambda item: (item[1][1], item[1][0])):
        lines.append(
            f'<rect x="{x - BOX_WIDTH / 2:.1f}" y="{y - BOX_HEIGHT / 2:.1f}" width="{BOX_WIDTH}" '
            f'height="{BOX_HEIGHT}" rx="6" fill="#eef3fb" stroke="#3d6db5"/>')
        lines.append(f'<text x="{x:.1f}" y="{y + 5:.1f}" text-anchor="middle">{room}</text>')
    for layer, y in sorted({(rooms[room], y) for room, (_, y) in places.items()}):
        lines.append(f'<text x="14" y="{y + 5:.1f}" fill="#5a6577">{layer}</text>')
    return "\n".join(lines + ["</svg>", ""])


def main(root: pathlib.Path, check: bool) -> int:
    rooms, _ = read_tables((root / "cmake/rooms.cmake").read_text())
    edges = without_detours(read_edges(root / "src", rooms))
    picture, path = draw(rooms, edges), root / "docs/rooms.svg"
    if not check:
        path.write_text(picture)
    elif not path.exists() or path.read_text() != picture:
        print("docs/rooms.svg is old: tools/draw_rooms.py . draws it", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--check"]):
        sys.exit("usage: draw_rooms.py SOURCE_ROOT [--check]")
    sys.exit(main(pathlib.Path(sys.argv[1]), len(sys.argv) == 3))
