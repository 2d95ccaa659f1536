# SPDX-License-Identifier: Apache-2.0
"""Features of any table sizes, dimensions and bags on the CPU: FBGEMM (TBE, and its inference TBE in
float32) and PyTorch (embedding_bag, feature by feature).

usage: embedding_features.py FOLDER   with shape.json, offsets.bin and ids.bin as `recmill bench` writes:
offsets.bin: int64, for each batch [features * samples + 1], from 0; ids.bin: int64, those of all batches.
"""
import json
import logging
import pathlib
import sys
import time

import numpy as np
import torch

from protocol import serve

logging.disable(logging.WARNING)  # of FBGEMM, which does not know its PyTorch
folder = pathlib.Path(sys.argv[1])
shape = json.loads((folder / "shape.json").read_text())
ROWS, DIMS, SAMPLES = shape["rows"], shape["dims"], shape["samples"]
F = len(ROWS)


def initial_rows(table):
    rows = torch.from_numpy(((np.arange(ROWS[table]) + 131 * table) % 8191).astype(np.float32) * np.float32(2.0**-20))
    columns = torch.from_numpy(np.arange(DIMS[table], dtype=np.float32) * np.float32(2.0**-12))
    return rows[:, None] + columns[None, :]


class Batches:
    """ids and offsets of every batch: as one call takes them, and feature by feature."""

    def __init__(self):
        offsets = np.fromfile(folder / "offsets.bin", dtype=np.int64)
        ids = np.fromfile(folder / "ids.bin", dtype=np.int64)
        self.offsets, self.ids, self.parts = [], [], []
        offset, first = 0, 0
        for samples in SAMPLES:
            of_batch = torch.from_numpy(offsets[offset : offset + F * samples + 1].copy())
            ids_of_batch = torch.from_numpy(ids[first : first + int(of_batch[-1])].copy())
            offset += F * samples + 1
            first += int(of_batch[-1])
            self.offsets.append(of_batch)
            self.ids.append(ids_of_batch)

    def by_feature(self, batch):
        """[(ids, offsets from 0)] of each feature, made before anything is timed."""
        samples, offsets, ids = SAMPLES[batch], self.offsets[batch], self.ids[batch]
        parts = []
        for f in range(F):
            own = offsets[f * samples : (f + 1) * samples + 1]
            parts.append((ids[own[0] : own[-1]], own[:-1] - own[0]))
        return parts


class Tbe:
    """One call for all tables; in training the optimizer runs inside backward."""

    def __init__(self, batches):
        from fbgemm_gpu.split_embedding_configs import EmbOptimType
        from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation, PoolingMode
        from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
            ComputeDevice,
            SplitTableBatchedEmbeddingBagsCodegen,
        )

        self.batches = batches
        self.tables = SplitTableBatchedEmbeddingBagsCodegen(
            [(rows, dim, EmbeddingLocation.HOST, ComputeDevice.CPU) for rows, dim in zip(ROWS, DIMS)],
            optimizer=EmbOptimType.EXACT_ROWWISE_ADAGRAD,
            learning_rate=shape["learning_rate"],
            eps=shape["epsilon"],
            pooling_mode=PoolingMode.SUM,
        )
        self.weights = self.tables.split_embedding_weights()
        for table, weights in enumerate(self.weights):
            weights.copy_(initial_rows(table))

    def forward(self, batch):
        return self.tables(self.batches.ids[batch], self.batches.offsets[batch])

    def train(self, batch):
        self.forward(batch).backward(gradient[: SAMPLES[batch]])


class InferenceTbe:
    """FBGEMM's other entry for the CPU, on rows in float32."""

    def __init__(self, batches, tbe):
        from fbgemm_gpu.split_embedding_configs import SparseType
        from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation, PoolingMode
        from fbgemm_gpu.split_table_batched_embeddings_ops_inference import IntNBitTableBatchedEmbeddingBagsCodegen

        self.ids = [ids.to(torch.int32) for ids in batches.ids]
        self.offsets = [offsets.to(torch.int32) for offsets in batches.offsets]
        self.tables = IntNBitTableBatchedEmbeddingBagsCodegen(
            [("", rows, dim, SparseType.FP32, EmbeddingLocation.HOST) for rows, dim in zip(ROWS, DIMS)],
            pooling_mode=PoolingMode.SUM,
            device="cpu",
            output_dtype=SparseType.FP32,
        )
        self.tables.initialize_weights()
        for (own, _), weights in zip(self.tables.split_embedding_weights(), tbe.weights):
            own.view(torch.float32)[:, : weights.shape[1]].copy_(weights)

    def forward(self, batch):
        return self.tables(self.ids[batch], self.offsets[batch])


class EmbeddingBags:
    """A call of torch's embedding_bag for each feature, on TBE's rows."""

    def __init__(self, batches, tbe):
        self.weights = tbe.weights
        self.parts = [batches.by_feature(batch) for batch in range(len(SAMPLES))]

    def outputs(self, batch):
        return [
            torch.nn.functional.embedding_bag(ids, weights, offsets, mode="sum")
            for (ids, offsets), weights in zip(self.parts[batch], self.weights)
        ]

    def forward(self, batch):
        return torch.cat(self.outputs(batch), dim=1)


class Mlp:
    """Rows of another system, then fully connected layers and a sigmoid."""

    def __init__(self, rows):
        self.rows = rows
        values = torch.from_numpy(np.fromfile(folder / "parameters.bin", dtype=np.float32))
        layers, inputs, at = [], sum(DIMS), 0
        for units in shape["layers"]:
            layer = torch.nn.Linear(inputs, units)
            with torch.no_grad():
                for parameter in (layer.weight, layer.bias):
                    parameter.copy_(values[at : at + parameter.numel()].view(parameter.shape))
                    at += parameter.numel()
            layers += [layer, torch.nn.ReLU()]
            inputs = units
        self.layers = torch.nn.Sequential(*layers[:-1], torch.nn.Sigmoid())

    def forward(self, batch):
        return self.layers(self.rows.forward(batch))


batches = Batches()
systems = {"fbgemm_tbe": Tbe(batches)}
if "gradient" in shape:
    gradient = torch.from_numpy(np.fromfile(folder / "gradient.bin", dtype=np.float32)).reshape(-1, sum(DIMS))
else:
    systems["torch_embeddingbag"] = EmbeddingBags(batches, systems["fbgemm_tbe"])
    if shape["inference"]:
        systems["fbgemm_inference"] = InferenceTbe(batches, systems["fbgemm_tbe"])
    if "layers" in shape:
        systems |= {f"{name}_mlp": Mlp(rows) for name, rows in systems.items()}


def check(request):
    """Trains on some batches where asked to, then looks one up."""
    system = systems[request["system"]]
    for batch in request.get("train", []):
        system.train(batch)
    with torch.no_grad():
        system.forward(request["batch"]).numpy().tofile(folder / "check.bin")
    return {}


def run(request):
    torch.set_num_threads(request["threads"])
    system = systems[request["system"]]
    if "gradient" in shape:
        start = time.perf_counter()
        for batch in request["order"]:
            system.train(batch)
        return {"seconds": time.perf_counter() - start}
    with torch.no_grad():
        start = time.perf_counter()
        for batch in request["order"]:
            system.forward(batch)
        return {"seconds": time.perf_counter() - start}


def profile(request):
    """What the operations of one pass over all batches take by themselves, a batch."""
    torch.set_num_threads(request["threads"])
    system = systems[request["system"]]
    with torch.no_grad():
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], acc_events=True) as profiled:
            for batch in range(len(SAMPLES)):
                system.forward(batch)
    total = sum(event.self_cpu_time_total for event in profiled.key_averages())
    return {"seconds": total * 1e-6 / len(SAMPLES)}


serve({"check": check, "run": run, "profile": profile})
