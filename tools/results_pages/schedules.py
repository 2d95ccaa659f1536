# SPDX-License-Identifier: Apache-2.0
"""Every schedule of a feature, timed: figure 3 of RecFlex. The ratios are of other schedules to the feature's best."""
from .words import machine_of, number, ratio, table


def tables(lines, _):
    features = {}
    for line in lines:
        name, _, feature = line.case.partition("/")
        if name.endswith("_schedules"):
            key = (machine_of(line), line.commit, name.removesuffix("_schedules"), feature)
            features.setdefault(key, []).append(line)
    rows = []
    for (machine, commit, workload, feature), timed in features.items():
        timed.sort(key=lambda line: line.ratio)
        near = sum(line.ratio <= 1.05 for line in timed)
        others = ratio(timed[1].ratio) if len(timed) > 1 else ""
        rows.append([f"`{workload}`, {feature}", f"`{timed[0].rival}`", number(timed[0].value), others,
                     f"{near} of {len(timed)}", ratio(timed[-1].ratio), machine, commit])
    return ("## Every schedule of a feature\n\nEach line is a feature. Its schedules are timed one by one; "
            "ratios are times over the best one's.\n\n"
            + table(["feature", "best schedule", "us", "best of the others", "within 5 %", "the slowest", "machine",
                     "commit"], rows) + "\n")
