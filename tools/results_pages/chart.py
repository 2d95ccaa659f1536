# SPDX-License-Identifier: Apache-2.0
"""A claim's chart as SVG: horizontal bars from 1 to a ratio on a log scale, in groups of a setting and machine.

With more than MOST ratios a bar is a rival, from its least ratio to its greatest, and a tick its geometric mean. A
claim without ratios shows shares of its limits instead. The bytes depend on nothing but the lines.
"""
import math
from xml.sax.saxutils import escape

from .words import EVEN, geometric_mean, machine_of, ratio

MOST = 40
ROW, BAR, TOP, WIDTH, CHARACTER = 20, 12, 64, 980, 6.7
BETTER, WORSE, INK, GRID = "#2b6cb0", "#c05621", "#1a202c", "#cbd5e0"
# From coarse to fine; the first with enough ticks is taken.
TICKS = [[10.0**e * m for e in range(-9, 10) for m in steps] for steps in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 5, 7))]
TICKS.append([m / 10 for m in range(1, 100)])
FEWEST_TICKS, TICK_WIDTH = 4, 45


class Bar:
    def __init__(self, label, low, high, mark, miss, said):
        self.label, self.low, self.high, self.mark, self.miss, self.said = label, low, high, mark, miss, said


def group_of(line):
    return " · ".join(filter(None, [line.setting, machine_of(line)]))


def bar_of_ratio(line, several_metrics):
    label = line.case + (f" · {line.metric}" if several_metrics else "") + f" · {line.rival}"
    label += f" · run {line.run}" if line.run else ""
    spread = "" if line.spread is None else f" ± {line.spread:.3f}"
    return Bar(label, min(1, line.ratio), max(1, line.ratio), None, line.ratio < 1 - EVEN, ratio(line.ratio) + spread)


def bars_of_ranges(lines, several_metrics):
    by_rival = {}
    for line in lines:
        label = f"{line.metric} · {line.rival}" if several_metrics else line.rival
        by_rival.setdefault(label, []).append(line.ratio)
    for rival, ratios in by_rival.items():
        low, mean, high = min(ratios), geometric_mean(ratios), max(ratios)
        yield Bar(f"{rival}, {len(ratios)} case{'s' * (len(ratios) > 1)}", low, high, mean, low < 1 - EVEN,
                  f"{ratio(low)} · {ratio(mean)} · {ratio(high)}")


def bar_of_share(line, miss, several_metrics):
    share = line.of_limit
    label = f"{line.case} · {line.metric}" if several_metrics else line.case
    if share <= 0:
        return Bar(label, None, None, None, miss, f"{share:.3f}, not on a log scale")
    return Bar(label, min(1, share), max(1, share), None, miss, ratio(share))


def groups_of(claim):
    """(title, groups of bars)."""
    lines = [line for line in claim.plain_lines() if line.ratio is not None]
    groups = {}
    if lines:
        for line in lines:
            groups.setdefault(group_of(line), []).append(line)
        several = len({line.metric for line in lines}) > 1
        if len(lines) > MOST:
            title = "ratio to rivals: least · geometric mean (tick) · greatest of their cases; orange: some below 1"
            return title, {group: list(bars_of_ranges(inner, several)) for group, inner in groups.items()}
        return "ratio to rivals, above 1 in Recmill's favour; orange: below 1", {
            group: [bar_of_ratio(line, several) for line in inner] for group, inner in groups.items()}
    lines = [line for line in claim.plain_lines() if line.of_limit is not None]
    several = len({line.metric for line in lines}) > 1
    for line in lines:
        groups.setdefault(group_of(line), []).append(bar_of_share(line, claim.misses_limit(line), several))
    return "share of the limit; orange: a miss", groups


class Axis:
    def __init__(self, bars, left, right):
        ends = [end for bar in bars for end in (bar.low, bar.high) if end is not None] or [1.0]
        self.low, self.high = min(0.9, min(ends) * 0.9), max(1.2, max(ends) * 1.1)
        self.left, self.right = left, right

    def x(self, value):
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.left + share * (self.right - self.left)

    def ticks(self):
        for ticks in TICKS:
            inside = [tick for tick in ticks if self.low <= tick <= self.high]
            if len(inside) >= FEWEST_TICKS:
                break
        apart = [1.0]  # so that no two labels overlap
        for tick in sorted(inside, key=lambda tick: abs(math.log(tick))):
            if all(abs(self.x(tick) - self.x(other)) >= TICK_WIDTH for other in apart):
                apart.append(tick)
        return sorted(apart)


def text(x, y, words, size=11, anchor="start", weight="normal", fill=INK):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" '
            f'fill="{fill}">{escape(words)}</text>')


def line_down(x, top, bottom, color, width):
    return f'<line x1="{x:.1f}" y1="{top:.1f}" x2="{x:.1f}" y2="{bottom:.1f}" stroke="{color}" stroke-width="{width}"/>'


def drawn_bar(bar, y, axis, said_at):
    parts = [text(axis.left - 10, y + 10, bar.label, anchor="end")]
    if bar.low is not None:
        left, right = axis.x(bar.low), axis.x(bar.high)
        color = WORSE if bar.miss else BETTER
        parts.append(f'<rect x="{left:.1f}" y="{y:.1f}" width="{max(right - left, 1.5):.1f}" height="{BAR}" '
                     f'fill="{color}"/>')
    if bar.mark is not None:
        parts.append(line_down(axis.x(bar.mark), y - 2, y + BAR + 2, INK, 2))
    return parts + [text(said_at, y + 10, bar.said)]


def svg(claim):
    title, groups = groups_of(claim)
    bars = [bar for group in groups.values() for bar in group]
    if not bars:
        return None
    left = 30 + CHARACTER * max(len(label) for label in [bar.label for bar in bars] + list(groups))
    said = 20 + CHARACTER * max(len(bar.said) for bar in bars)
    width = max(WIDTH, left + said + 300)
    axis = Axis(bars, left, width - said)
    height = TOP + ROW * (len(bars) + 1.4 * len(groups)) + 20
    body = [text(16, 24, claim.title, 14, weight="bold"), text(16, 42, title)]
    for tick in axis.ticks():
        body += [line_down(axis.x(tick), TOP, height - 14, GRID, 1),
                 text(axis.x(tick), TOP - 5, f"{tick:,.7g}", anchor="middle")]
    y = TOP
    for group, inner in groups.items():
        body.append(text(16, y + 20, group, 11, weight="bold"))
        y += 1.4 * ROW
        for bar in inner:
            body += drawn_bar(bar, y + 3, axis, width - said + 12)
            y += ROW
    body.append(line_down(axis.x(1), TOP, height - 14, INK, 1.5))
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" '
            f'role="img">')
    background = f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>'
    return "\n".join([head, f"<title>{escape(claim.title)}</title>", background, *body, "</svg>"]) + "\n"
