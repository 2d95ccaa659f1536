# SPDX-License-Identifier: Apache-2.0
"""Numbers and lists as the pages write them."""
import math

EVEN = 0.001  # a ratio this near to 1 is even


def number(value):
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    if size >= 100:
        return f"{value:.1f}".removesuffix(".0")
    if size >= 1:
        return f"{value:.2f}".removesuffix(".00")
    if size < 1e-5:
        return f"{value:.2g}"
    return f"{value:.{3 - math.floor(math.log10(size))}f}".rstrip("0").rstrip(".")


def ratio(value):
    """Below 10 with two decimals, or with four what is neither even nor 1.01."""
    if value >= 1000:
        return f"{value:,.0f}"
    if value >= 100:
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}"
    if EVEN < abs(value - 1) < 0.005:
        return f"{value:.4f}"
    return f"{value:.2f}"


def percent(share):
    share *= 100
    return f"{share:.0f} %" if share >= 1 else f"{share:.2g} %"


def listed(words, most=3):
    if len(words) > most:
        return "; ".join(words[:most]) + f"; and {len(words) - most} more"
    return "; ".join(words)


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def machine_of(line):
    machine = line.machine or "machine not recorded"
    return f"{line.device}; {machine}" if line.device and line.machine else line.device or machine


def share(value):
    return f"{value:.2f}" if abs(value) >= 0.01 else number(value)


def plain(text):
    return text.replace("_", " ")


def table(header, rows):
    text = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(text + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def folded(summary, text):
    return f"<details>\n<summary>{summary}</summary>\n\n{text}\n</details>\n"
