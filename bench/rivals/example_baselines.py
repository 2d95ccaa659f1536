# SPDX-License-Identifier: Apache-2.0
"""A configuration's AUC beside that of logistic regression and of gradient-boosted trees (scikit-learn), on the same
training and evaluation rows.

usage: example_baselines.py RECMILL CONFIG [KEY=VALUE ...]

Logistic regression: an indicator for each id, dense columns standardised, as they are and as logarithms; with the dense
columns alone too; the best of five strengths of L2 by hindsight. Trees: dense columns, and for each id column the mean
label of the id in the other folds. Recmill: three seeds, as the configuration trains. Prints one JSON object.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import pyarrow.parquet as parquet
from scipy.sparse import csr_matrix, hstack
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

recmill, config, settings = sys.argv[1], sys.argv[2], sys.argv[3:]
SETS = [word for setting in settings for word in ("--set", setting)]
FOLDS, STRENGTHS = 5, (0.01, 0.03, 0.1, 0.3, 1.0)


def run(*arguments):
    return subprocess.run([recmill, *arguments, *SETS], check=True, capture_output=True, text=True).stdout


class Rows:
    """Columns by role, of a file that says them itself."""

    def __init__(self, path):
        table = parquet.read_table(path)
        role = lambda field: (field.metadata or {}).get(b"recmill.role", b"").decode()
        named = lambda wanted: [field.name for field in table.schema if role(field) == wanted]
        self.labels = table.column(named("label")[0]).to_numpy() > 0.5
        self.dense = np.array([table.column(name).to_numpy(zero_copy_only=False) for name in named("dense")], float)
        self.dense = np.nan_to_num(self.dense.T.reshape(len(self.labels), -1))
        self.ids = {}
        for name in named("id"):
            cells = table.column(name).to_pylist()
            self.ids[name] = [cell if isinstance(cell, list) else [cell] for cell in cells]


def indicators(train, rows):
    columns = []
    for name, bags in train.ids.items():
        number = {}
        for bag in bags:
            for item in bag:
                number.setdefault(item, len(number))
        at = [(row, number[item]) for row, bag in enumerate(rows.ids[name]) for item in bag if item in number]
        places = np.array(at, int).reshape(-1, 2).T
        columns.append(csr_matrix((np.ones(len(at)), places), shape=(len(rows.labels), len(number))))
    return columns


def standardised(train, rows, logarithms):
    values = lambda x: np.log1p(np.maximum(x, 0)) if logarithms else x
    mean, deviation = values(train.dense).mean(0), values(train.dense).std(0)
    return csr_matrix((values(rows.dense) - mean) / np.where(deviation > 0, deviation, 1))


def regression(train, evaluation, with_ids):
    best = 0.0
    for logarithms in (False, True):
        parts = [[standardised(train, rows, logarithms)] if train.dense.shape[1] else [] for rows in (train, evaluation)]
        if with_ids:
            parts = [part + indicators(train, rows) for part, rows in zip(parts, (train, evaluation))]
        if not parts[0]:
            return None
        x, x_eval = (hstack(part).tocsr() for part in parts)
        for strength in STRENGTHS:
            model = LogisticRegression(C=strength, max_iter=300).fit(x, train.labels)
            best = max(best, roc_auc_score(evaluation.labels, model.decision_function(x_eval)))
    return best


def mean_labels(train, rows, fold_of):
    """The mean label of each bag's ids, smoothed, of rows in other folds than the row's own."""
    prior, out = train.labels.mean(), []
    for name, bags in train.ids.items():
        sums = [{} for _ in range(FOLDS + 1)]
        for bag, label, fold in zip(bags, train.labels, train.folds):
            for item in bag:
                for at in (fold, FOLDS):
                    count = sums[at].setdefault(item, [0, 0.0])
                    count[0] += 1
                    count[1] += label
        column = []
        for bag, fold in zip(rows.ids[name], fold_of):
            rates = []
            for item in bag:
                count, total = sums[FOLDS].get(item, (0, 0.0))
                own = sums[fold].get(item, (0, 0.0)) if fold >= 0 else (0, 0.0)
                rates.append((total - own[1] + 10 * prior) / (count - own[0] + 10))
            column.append(np.mean(rates) if rates else prior)
        out.append(column)
    return np.array(out).T.reshape(len(rows.labels), -1)


def trees(train, evaluation):
    train.folds = np.random.default_rng(0).integers(0, FOLDS, len(train.labels))
    none = np.full(len(evaluation.labels), -1)
    x = np.hstack([train.dense, mean_labels(train, train, train.folds)])
    x_eval = np.hstack([evaluation.dense, mean_labels(train, evaluation, none)])
    model = HistGradientBoostingClassifier(max_iter=300, learning_rate=0.05, early_stopping=True, random_state=0)
    return roc_auc_score(evaluation.labels, model.fit(x, train.labels).predict_proba(x_eval)[:, 1])


def trained(seed, folder):
    name = f"train.seed={seed}"
    out = run("train", config, "--quiet", "--json", "--overwrite", "--set", name, "--set", f"train.runs={folder}/runs")
    return json.loads(out)["auc"]


with tempfile.TemporaryDirectory() as folder:
    parts = []
    for subset in ("train", "eval"):
        path = pathlib.Path(folder) / f"{subset}.parquet"
        run("convert", config, "--subset", subset, "--out", str(path), "--quiet")
        parts.append(Rows(path))
    print(json.dumps({
        "configuration": config,
        "rows": [len(part.labels) for part in parts],
        "recmill": [round(trained(seed, folder), 4) for seed in (1, 2, 3)],
        "logistic_regression": round(regression(*parts, with_ids=True), 4),
        "logistic_regression_of_dense_columns": (lambda auc: auc and round(auc, 4))(regression(*parts, with_ids=False)),
        "gradient_boosted_trees": round(trees(*parts), 4),
    }))
