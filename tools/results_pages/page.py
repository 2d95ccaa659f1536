# SPDX-License-Identifier: Apache-2.0
"""The page of one claim: use, verdict, chart, tables, machines."""
from . import bagpipe, oper, schedules
from .words import EVEN, folded, geometric_mean, machine_of, number, plain, ratio, share, table

LONG = 40  # rows; a longer table is folded
FEW = 8    # limits of one metric that a list shows; more become a table by case

TABLES = {"bagpipe": bagpipe.tables, "oper": oper.tables, "schedules": schedules.tables}


def spread_of(line):
    return "" if line.spread is None else f"{line.spread:.3f}"


def limit_of(line):
    return ["", ""] if line.of_limit is None else [f"{number(line.limit)} {line.unit}".strip(), share(line.of_limit)]


def name_of(line):
    return f"`{line.case}`" + (f" (run {line.run})" if line.run else "")


def value_of(line):
    return f"{number(line.value)} {line.unit}".strip()


def with_setting(lines):
    """Columns that tell lines apart beside their cases: head, and what a line has there."""
    columns = []
    if len({line.setting for line in lines}) > 1:
        columns.append(("setting", lambda line: line.setting))
    if len({line.metric for line in lines}) > 1:
        columns.append(("what", lambda line: plain(line.metric)))
    if any(line.foreign_load for line in lines):
        columns.append(("load of others", lambda line: number(line.foreign_load) if line.foreign_load else ""))
    return columns


def list_of(lines, columns):
    more = with_setting(lines)
    header = ["case", *[head for head, _ in more], *[head for head, _ in columns]]
    return table(header, [[name_of(line), *[str(of(line)) for _, of in more], *[of(line) for _, of in columns]]
                          for line in lines])


MEASURED = [("ours", value_of)]
WHERE = [("limit", lambda line: limit_of(line)[0]), ("share of limit", lambda line: limit_of(line)[1]),
         ("machine", machine_of), ("commit", lambda line: line.commit or "not recorded")]
BESIDE = [("rival", lambda line: f"`{line.rival}`"), ("ratio", lambda line: ratio(line.ratio)), ("spread", spread_of)]


def summary_of_rivals(lines):
    groups = {}
    for line in lines:
        groups.setdefault((line.rival, plain(line.metric), line.setting, machine_of(line)), []).append(line.ratio)
    keep = [at for at in (1, 2) if len({key[at] for key in groups}) > 1]
    rows = [[f"`{key[0]}`", *[key[at] for at in keep], str(len(ratios)), ratio(min(ratios)),
             ratio(geometric_mean(ratios)), ratio(max(ratios)), str(sum(value < 1 - EVEN for value in ratios)), key[3]]
            for key, ratios in groups.items()]
    return table(["rival", *[("what", "setting")[at - 1] for at in keep], "cases", "least ratio", "geometric mean",
                  "greatest", "below 1", "machine"], rows)


def rivals_part(lines):
    if not lines:
        return ""
    text = list_of(lines, MEASURED + BESIDE + WHERE)
    if len(lines) <= LONG:
        return f"## Beside rivals\n\n{text}\n"
    return f"## Beside rivals\n\n{summary_of_rivals(lines)}\n{folded(f'All {len(lines)} comparisons', text)}\n"


def by_case(lines):
    """Tables with a line a case and a column a metric, one for all cases that have the same metrics."""
    cases, text = {}, ""
    for line in lines:
        key = (line.case, line.setting, machine_of(line), line.commit, line.run)
        cases.setdefault(key, {})[line.metric] = line
    groups = {}
    for key, metrics in cases.items():
        groups.setdefault(tuple(sorted(metrics)), []).append((key, metrics))
    for metrics, inner in groups.items():
        first = inner[0][1]
        names = [f"{plain(metric)}{', ' + first[metric].unit if first[metric].unit else ''}" for metric in first]
        cells = [[number(lines[metric].value) for metric in first] for _, lines in inner]
        where = [[f"`{case}`" + (f" (run {run})" if run else ""), setting, machine, commit or ""]
                 for (case, setting, machine, commit, run), _ in inner]
        if len(metrics) > FEW and len(inner) < len(metrics):
            header = ["", *[f"{case[0]} {case[1]}".strip() for case in where]]
            rows = [[name, *column] for name, column in zip(names, map(list, zip(*cells)))]
            rows += [["machine", *[case[2] for case in where]], ["commit", *[case[3] for case in where]]]
        else:
            keep = [0] + [1] * (len({line.setting for line in lines}) > 1)
            header = ["case", *(["setting"] if len(keep) > 1 else []), *names, "machine", "commit"]
            rows = [[*[case[at] for at in range(len(keep))], *row, *case[2:]] for case, row in zip(where, cells)]
        written = table(header, rows)
        summary = f"{len(rows)} lines of {', '.join(names[:3])}"
        text += (written if len(rows) <= LONG else folded(summary, written)) + "\n"
    return text


def limits_part(lines):
    limits_of = {}
    for line in lines:
        limits_of.setdefault(line.metric, []).append(line.limit)
    many = [line for line in lines if len(limits_of[line.metric]) > FEW and len(set(limits_of[line.metric])) == 1]
    few = [line for line in lines if line not in many]
    if not lines:
        return ""
    text = "## Beside limits\n\n"
    if few:
        text += list_of(few, MEASURED + WHERE) + "\n"
    limits = sorted({(plain(line.metric), value_of_limit(line)) for line in many})
    if many:
        text += "Limits: " + ", ".join(f"{metric} {limit}" for metric, limit in limits) + ".\n\n" + by_case(many)
    return text


def value_of_limit(line):
    return f"{number(line.limit)} {line.unit}".strip()


def figures_part(lines):
    return f"## Other figures\n\n{by_case(lines)}" if lines else ""


def about(claim):
    parts = [f"**Asked.** {claim.asked}", f"**Measured.** {claim.timed}"]
    if claim.limit:
        parts.append(f"**Limit.** {claim.limit}")
    if claim.rivals:
        used = {line.rival for line in claim.lines}
        said = [f"- `{name}`: {words}" for name, words in claim.rivals.items() if name in used]
        parts.append("**Rivals.**\n\n" + "\n".join(said))
    if claim.not_judged:
        parts.append("**Not in the verdict.** " + " ".join(rule["why"] for rule in claim.not_judged))
    return "\n\n".join(parts)


def measured_where(claim):
    where = {}
    for line in claim.lines:
        where.setdefault(machine_of(line), {}).setdefault(line.commit or "not recorded", None)
    rows = [[machine, ", ".join(commits)] for machine, commits in where.items()]
    files = dict.fromkeys(line.source.partition(":")[0] for line in claim.lines)
    data = ", ".join(f"[{file.rpartition('/')[2]}](../../{file})" for file in files)
    return ("## Machines and commits\n\n" + table(["machine", "commits"], rows)
            + f"\nThe lines are in {data}. [All machines](machines.md)\n")


def page(claim, has_chart, all_lines):
    plain_lines = claim.plain_lines()
    beside = [line for line in plain_lines if line.ratio is not None]
    limits = [line for line in plain_lines if line.ratio is None and line.of_limit is not None]
    figures = [line for line in plain_lines if line.ratio is None and line.of_limit is None]
    chart = f"![{claim.title}]({claim.name}.svg)\n\n" if has_chart else ""
    own = "".join(TABLES[name](claim.lines, all_lines) for name in claim.tables)
    return (f"# {claim.title}\n\n{claim.use} To measure it yourself: `{claim.command}`. [All results](README.md)\n\n"
            f"**Verdict.** {claim.verdict()}\n\n{chart}{about(claim)}\n\n{own}{rivals_part(beside)}"
            f"{limits_part(limits)}{figures_part(figures)}{measured_where(claim)}")
