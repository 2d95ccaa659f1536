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
        self.bags = {name: Bags(table.column(name).combine_chunks()) for name in named("id")}


class Bags:
    """The ids of a column: `items`, each with the number of its row. A cell without an id has one of its own."""

    def __init__(self, column):
        lists = hasattr(column, "flatten")
        items = column.flatten() if lists else column
        self.items = items.fill_null(np.iinfo(items.type.to_pandas_dtype()).max).to_numpy()
        lengths = column.value_lengths().fill_null(0).to_numpy() if lists else np.ones(len(column), int)
        self.rows = np.repeat(np.arange(len(column)), lengths)
        self.count = len(column)

    def places_in(self, distinct):
        """Of each item its place in `distinct`, which is sorted, and whether it is there."""
        places = np.minimum(np.searchsorted(distinct, self.items), len(distinct) - 1)
        return places, distinct[places] == self.items


def indicators(train, rows):
    columns = []
    for name, bags in rows.bags.items():
        distinct = np.unique(train.bags[name].items)
        places, known = bags.places_in(distinct)
        at = (bags.rows[known], places[known])
        columns.append(csr_matrix((np.ones(known.sum()), at), shape=(bags.count, len(distinct))))
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
    for name, bags in rows.bags.items():
        of_train = train.bags[name]
        distinct, places = np.unique(of_train.items, return_inverse=True)
        at = train.folds[of_train.rows] * len(distinct) + places
        tally = lambda weights: np.bincount(at, weights, FOLDS * len(distinct)).reshape(FOLDS, -1)
        counts, labels = tally(None), tally(train.labels[of_train.rows].astype(float))
        places, known = bags.places_in(distinct)
        fold = fold_of[bags.rows]
        own = lambda of: np.where(fold < 0, 0, of[fold, places])
        others = [np.where(known, of.sum(0)[places] - own(of), 0) for of in (labels, counts)]
        rates = (others[0] + 10 * prior) / (others[1] + 10)
        sums, lengths = (np.bincount(bags.rows, weights, bags.count) for weights in (rates, None))
        out.append(np.where(lengths > 0, sums / np.maximum(lengths, 1), prior))
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
