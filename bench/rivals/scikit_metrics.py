#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recmill's AUC and log loss beside scikit-learn's, on 10,000 seeded cases with ties, weights,
saturated logits and single classes: equal to 1e-9, relative above 1, or undefined by both.

usage: .venv-rivals/bin/python bench/rivals/scikit_metrics.py build/tests/write_metric_cases

Prints one JSON line: {"cases", "auc", "auc_undefined", "log_loss", "log_loss_undefined"}, the largest
differences and how many are undefined; exit status 1 where one is larger, or one side alone has a
value. scikit-learn's log_loss() takes probabilities and keeps them from 0 by 2^-52: it is asked where
all |logits| are at most 35, with both classes' probabilities of their own, and its formula in long
double stands in for it elsewhere.
"""
import json
import subprocess
import sys
import warnings

import numpy as np
from scipy.special import expit
from sklearn.metrics import log_loss, roc_auc_score


def value_or_none(metric):
    """None where scikit-learn raises an error, or warns and returns NaN."""
    try:
        value = metric()
    except (ValueError, ZeroDivisionError):
        return None
    return None if np.isnan(value) else float(value)


def their_log_loss(labels, logits, weights):
    if np.abs(logits).max() <= 35:
        both = np.column_stack([expit(-logits), expit(logits)])
        return log_loss(labels, both, sample_weight=weights, labels=[0, 1])
    wide = logits.astype(np.longdouble)
    return np.average(np.logaddexp(0, np.where(labels == 1, -wide, wide)), weights=weights)


def main():
    warnings.simplefilter("ignore")
    lines = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, check=True).stdout.splitlines()
    result = {"cases": len(lines), "auc": 0.0, "auc_undefined": 0, "log_loss": 0.0, "log_loss_undefined": 0}
    for number, line in enumerate(lines):
        case = json.loads(line)
        labels, logits = np.array(case["labels"]), np.array(case["logits"])
        weights = None if case["weights"] is None else np.array(case["weights"])
        theirs = {
            "auc": value_or_none(lambda: roc_auc_score(labels, logits, sample_weight=weights)),
            "log_loss": value_or_none(lambda: their_log_loss(labels, logits, weights)),
        }
        for name, value in theirs.items():
            if value is None or case[name] is None:
                if value is not case[name]:
                    sys.exit(f"case {number}: {name} is {case[name]} here, {value} there")
                result[name + "_undefined"] += 1
                continue
            difference = abs(value - case[name]) / max(1.0, abs(value))
            if not difference <= 1e-9:
                sys.exit(f"case {number}: {name} is {case[name]} here, {value} there")
            result[name] = max(result[name], difference)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
