#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A plain PyTorch DLRM over weights, batches and learning rates that Recmill exported.

usage: pytorch_dlrm.py FOLDER [--autocast] [--threads N]
           trains over all batches in order, evaluates, prints one JSON line:
           {"log_loss", "auc", "samples", "train_log_loss", "seconds"}; train_log_loss is the mean
           over the samples of the training batches, each scored before its update
       pytorch_dlrm.py FOLDER --serve [--autocast] [--cuda] [--threads N]
           a rival of `recmill bench train` (protocol.py), with --cuda on the GPU, to which each
           batch is copied from pinned memory, its indices at once: {"check": N} trains over the first N
           batches and answers {"losses": [mean log loss of each, before its update]};
           {"run": [batch, ...]} trains over these and answers {"seconds", "samples"}

FOLDER holds (.npy as numpy writes it, C order, little endian):
  model.json            {"num_dense": 13, "dim": 16, "bottom": [512, 256, 64, 16], "top": [512, 256, 1],
                         "table_rows": [rows of each table],
                         "features": [{"table": 0, "pooling": "sum" | "mean"}, ...],
                         "optimizer": the dense optimizer, "row_optimizers": one for each table;
                         both with Recmill's keys: "kind" and its constants}
  parameters/NAME.npy   float32, by state_dict name: bottom.0.weight [512, 13], bottom.0.bias [512],
                        bottom.2.weight ..., top.0.weight ...
  tables/T.npy          float32 [rows, dim] of table T = 0, 1 ...; where it is absent, element e of
                        the table (row-major) is ((e * 2654435761 mod 2^32) / 2^31 - 1) / sqrt(rows),
                        in float64, rounded once
  train/, eval/         dense.npy float32 [samples, num_dense]; labels.npy float32 [samples];
                        batches.npy int64 [batches + 1]: batch i is samples [b[i], b[i + 1]);
                        rows_F.npy int64 [lookups] of feature F = 0, 1 ...;
                        offsets_F.npy int64 [samples + 1] into them, absent where every bag is one row;
                        weights_F.npy float32 [lookups], absent where all are 1 (pooling sum only)
  train/learning_rates.npy   float64 [batches, 1 + tables]: the dense parameters', then each table's
"""
import argparse
import json
import math
import pathlib
import time

import numpy as np
import torch
from torch import nn


class Samples:
    """train/ or eval/: one batch at a time, as tensors."""

    def __init__(self, folder, features):
        def read(name):
            path = folder / f"{name}.npy"
            return np.load(path, mmap_mode="r") if path.exists() else None

        self.dense, self.labels = read("dense"), read("labels")
        self.bounds, self.learning_rates = read("batches"), read("learning_rates")
        self.features = [(read(f"rows_{f}"), read(f"offsets_{f}"), read(f"weights_{f}")) for f in range(features)]

    def __len__(self):
        return len(self.bounds) - 1

    def size(self, batch):
        return int(self.bounds[batch + 1] - self.bounds[batch])

    def batch(self, batch):
        first, last = int(self.bounds[batch]), int(self.bounds[batch + 1])
        bags = []
        for rows, offsets, weights in self.features:
            if offsets is None:
                begin, end, starts = first, last, np.arange(last - first)
            else:
                begin, end = int(offsets[first]), int(offsets[last])
                starts = np.array(offsets[first:last]) - begin
            own_weights = None if weights is None else torch.from_numpy(np.array(weights[begin:end]))
            bags.append((torch.from_numpy(np.array(rows[begin:end])), torch.from_numpy(starts), own_weights))
        dense = torch.from_numpy(np.array(self.dense[first:last]))
        return dense, bags, torch.from_numpy(np.array(self.labels[first:last]))


def layers(inputs, sizes, last_relu):
    stack = []
    for size in sizes:
        stack += [nn.Linear(inputs, size), nn.ReLU()]
        inputs = size
    return nn.Sequential(*(stack if last_relu else stack[:-1]))


class Dlrm(nn.Module):
    def __init__(self, spec, folder, device):
        super().__init__()
        self.spec = spec
        dim, features = spec["dim"], spec["features"]
        vectors = len(features) + bool(spec["bottom"])
        self.bottom = layers(spec["num_dense"], spec["bottom"], last_relu=True)
        self.top = layers(vectors * (vectors - 1) // 2 + bool(spec["bottom"]) * dim, spec["top"], last_relu=False)
        parameters = {name: np.load(folder / "parameters" / f"{name}.npy") for name in self.state_dict()}
        self.load_state_dict({name: torch.from_numpy(values) for name, values in parameters.items()})
        self.dense_parameters = list(self.parameters())
        # One table may serve several features, so the pooling is the call's.
        self.tables = nn.ParameterList(
            table_of(folder, t, rows, dim, device) for t, rows in enumerate(spec["table_rows"])
        )
        self.register_buffer("pairs", torch.tril_indices(vectors, vectors, offset=-1), persistent=False)

    def forward(self, dense, bags):
        vectors = [self.bottom(dense)] if self.spec["bottom"] else []
        for feature, (rows, offsets, weights) in zip(self.spec["features"], bags):
            vectors.append(
                nn.functional.embedding_bag(
                    rows, self.tables[feature["table"]], offsets, mode=feature["pooling"], sparse=True,
                    per_sample_weights=weights
                )
            )
        dtype = vectors[0].dtype
        stacked = torch.stack([vector.to(dtype) for vector in vectors], dim=1)
        products = torch.bmm(stacked, stacked.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        inputs = torch.cat([vectors[0], products], dim=1) if self.spec["bottom"] else products
        return self.top(inputs).squeeze(1).float()


def table_of(folder, table, rows, dim, device):
    path = folder / "tables" / f"{table}.npy"
    if path.exists():
        return nn.Parameter(torch.from_numpy(np.load(path)).to(device))
    values = torch.empty(rows * dim, device=device)
    for begin in range(0, rows * dim, 1 << 20):
        e = torch.arange(begin, min(begin + (1 << 20), rows * dim), device=device)
        unit = e.mul_(2654435761).bitwise_and_(0xFFFFFFFF).double().div_(2.0**31).sub_(1.0)
        values[begin : begin + len(e)] = unit.div_(math.sqrt(rows))
    return nn.Parameter(values.view(rows, dim))


class RowwiseAdagrad(torch.optim.Optimizer):
    """Per touched row: s += mean(g * g);  w -= lr * g / (sqrt(s) + epsilon)."""

    def __init__(self, parameters, lr, eps, initial_accumulator_value):
        super().__init__(parameters, {"lr": lr, "eps": eps})
        for group in self.param_groups:
            for table in group["params"]:
                self.state[table]["sum"] = torch.full((table.shape[0],), initial_accumulator_value)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for table in group["params"]:
                if table.grad is None:
                    continue
                gradient = table.grad.coalesce()
                rows, values, sums = gradient.indices()[0], gradient.values(), self.state[table]["sum"]
                sums[rows] += values.square().mean(dim=1)
                table.index_add_(0, rows, values / (sums[rows].sqrt() + group["eps"])[:, None], alpha=-group["lr"])


def optimizer_of(parameters, options, sparse):
    """torch.optim's, where it has one with Recmill's formula."""
    kind = options["kind"]
    decay = {} if sparse else {"weight_decay": options.get("weight_decay", 0.0)}
    adagrad = {"eps": options.get("epsilon", 1e-8), "initial_accumulator_value": options.get("initial_accumulator", 0.0)}
    if kind == "sgd":
        return torch.optim.SGD(parameters, lr=0.0, momentum=0.0 if sparse else options.get("momentum", 0.0), **decay)
    if kind == "adagrad":
        return torch.optim.Adagrad(parameters, lr=0.0, **adagrad, **decay)
    if kind == "rowwise_adagrad" and sparse:
        return RowwiseAdagrad(parameters, lr=0.0, **adagrad)
    if kind == "adam" and not sparse:
        betas = (options["beta1"], options["beta2"])
        return torch.optim.Adam(parameters, lr=0.0, betas=betas, eps=options["epsilon"], **decay)
    raise SystemExit(f"pytorch_dlrm: no optimizer '{kind}' for {'tables' if sparse else 'dense parameters'}")


def optimizers_of(model, spec, learning_rates):
    """[(optimizer, its column of learning_rates)]: the dense parameters' first; tables with the same constants and rates
    have one, as a step of each has a cost of its own."""
    alike = {}
    for t, options in enumerate(spec["row_optimizers"]):
        key = json.dumps(options, sort_keys=True), learning_rates[:, 1 + t].tobytes()
        alike.setdefault(key, []).append(t)
    return [(optimizer_of(model.dense_parameters, spec["optimizer"], sparse=False), 0)] + [
        (optimizer_of([model.tables[t] for t in of], spec["row_optimizers"][of[0]], sparse=True), 1 + of[0])
        for of in alike.values()
    ]


class Trainer:
    def __init__(self, folder, autocast, device="cpu"):
        spec = json.loads((folder / "model.json").read_text())
        self.device = torch.device(device)
        self.model = Dlrm(spec, folder, self.device).to(self.device)
        self.train = Samples(folder / "train", len(spec["features"]))
        self.folder, self.autocast = folder, autocast
        self.clip_norm = spec["optimizer"].get("clip_norm", 0.0)
        # .to() keeps the parameters that there are.
        self.optimizers = optimizers_of(self.model, spec, self.train.learning_rates)
        self.loss = nn.BCEWithLogitsLoss()

    def logits(self, dense, bags):
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.autocast):
            return self.model(dense, bags)

    def step(self, batch, index):
        """Trains on `batch` with the learning rates of batch `index`; returns the loss before it."""
        dense, bags, labels = batch
        for optimizer, column in self.optimizers:
            optimizer.param_groups[0]["lr"] = float(self.train.learning_rates[index, column])
            optimizer.zero_grad(set_to_none=True)
        loss = self.loss(self.logits(dense, bags), labels)
        loss.backward()
        if self.clip_norm > 0.0:
            nn.utils.clip_grad_norm_(self.model.dense_parameters, self.clip_norm)
        for optimizer, _ in self.optimizers:
            optimizer.step()
        return loss

    @torch.no_grad()
    def evaluate(self):
        held_out = Samples(self.folder / "eval", len(self.model.spec["features"]))
        scores, labels = [], []
        for index in range(len(held_out)):
            dense, bags, own_labels = held_out.batch(index)
            scores.append(self.logits(dense, bags).double())
            labels.append(own_labels.double())
        scores, labels = torch.cat(scores), torch.cat(labels)
        log_loss = nn.functional.binary_cross_entropy_with_logits(scores, labels).item()
        return {"log_loss": log_loss, "auc": auc(scores.numpy(), labels.numpy()), "samples": len(labels)}


def auc(scores, labels):
    """Area under the ROC curve, exact; ties count one half."""
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2.0)[inverse]
    positive = labels > 0.5
    p, n = int(positive.sum()), int((~positive).sum())
    return float((ranks[positive].sum() - p * (p + 1) / 2.0) / (p * n)) if p and n else math.nan


class Packed:
    """A batch in pinned memory, its indices in one piece: they are copied to a GPU at once."""

    def __init__(self, batch):
        self.dense, bags, self.labels = batch
        self.dense, self.labels = self.dense.pin_memory(), self.labels.pin_memory()
        indices = [tensor for rows, starts, _ in bags for tensor in (rows, starts)]
        self.lengths = [len(tensor) for tensor in indices]
        self.indices = torch.cat(indices).pin_memory()
        self.weights = [None if weights is None else weights.pin_memory() for _, _, weights in bags]

    def on(self, device):
        def copied(tensor):
            return None if tensor is None else tensor.to(device, non_blocking=True)

        indices = copied(self.indices).split(self.lengths)
        bags = list(zip(indices[0::2], indices[1::2], map(copied, self.weights)))
        return copied(self.dense), bags, copied(self.labels)


def serve(trainer):
    from protocol import serve as serve_protocol

    batches = [trainer.train.batch(index) for index in range(len(trainer.train))]
    on_gpu = trainer.device.type == "cuda"
    if on_gpu:
        batches = [Packed(batch) for batch in batches]

    def step(index):
        batch = batches[index]
        return trainer.step(batch.on(trainer.device) if on_gpu else batch, index)

    def check(count):
        return {"losses": [step(index).item() for index in range(count)]}

    def run(order):
        start = time.perf_counter()
        for index in order:
            step(index)
        if on_gpu:
            torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        return {"seconds": seconds, "samples": sum(trainer.train.size(index) for index in order)}

    serve_protocol({"check": check, "run": run})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--serve", action="store_true", help="answer requests of `recmill bench train`")
    parser.add_argument("--autocast", action="store_true", help="dense layers in bfloat16 by torch.autocast")
    parser.add_argument("--cuda", action="store_true", help="on the GPU")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    trainer = Trainer(arguments.folder, arguments.autocast, "cuda" if arguments.cuda else "cpu")
    if arguments.serve:
        return serve(trainer)
    start, loss = time.perf_counter(), 0.0
    for index in range(len(trainer.train)):
        loss += trainer.step(trainer.train.batch(index), index).item() * trainer.train.size(index)
    seconds = time.perf_counter() - start
    result = trainer.evaluate()
    result["train_log_loss"] = loss / int(trainer.train.bounds[-1])
    result["seconds"] = seconds
    print(json.dumps(result))


if __name__ == "__main__":
    main()
