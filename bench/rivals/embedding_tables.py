# SPDX-License-Identifier: Apache-2.0
"""Embedding tables of FBGEMM (TBE, row-wise Adagrad) and PyTorch (EmbeddingBag, SGD) on the CPU.

usage: embedding_tables.py FOLDER   with shape.json, ids.bin and gradient.bin as `recmill bench` writes
"""
import json
import mmap
import pathlib
import sys
import time

import numpy as np
import torch

from protocol import serve

folder = pathlib.Path(sys.argv[1])
shape = json.loads((folder / "shape.json").read_text())
torch.set_num_threads(shape["threads"])
T, E, D, B, L = (shape[k] for k in ("tables", "rows", "dim", "samples", "bag"))
ids = np.fromfile(folder / "ids.bin", dtype=np.int64).reshape(shape["batches"], T, B * L)


def in_huge_pages(array):
    """A copy on pages like those that Recmill's own gradient stands on."""
    huge = 2 << 20
    memory = mmap.mmap(-1, array.nbytes + 2 * huge, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    whole = np.frombuffer(memory, dtype=np.uint8)
    begin = -whole.ctypes.data % huge
    copy = whole[begin : begin + array.nbytes].view(array.dtype)
    copy[:] = array
    return copy


gradient = torch.from_numpy(in_huge_pages(np.fromfile(folder / "gradient.bin", dtype=np.float32)).reshape(B, T * D))


def initial_rows():
    rows = torch.from_numpy((np.arange(E) % 8191).astype(np.float32) * np.float32(2.0**-20))
    columns = torch.from_numpy(np.arange(D, dtype=np.float32) * np.float32(2.0**-12))
    return rows[:, None] + columns[None, :]


class Tbe:
    """One call for all tables; the optimizer runs inside backward. Its gradient is not made anew."""

    def __init__(self):
        from fbgemm_gpu.split_embedding_configs import EmbOptimType
        from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation, PoolingMode
        from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
            ComputeDevice,
            SplitTableBatchedEmbeddingBagsCodegen,
        )

        self.tables = SplitTableBatchedEmbeddingBagsCodegen(
            [(E, D, EmbeddingLocation.HOST, ComputeDevice.CPU)] * T,
            optimizer=EmbOptimType.EXACT_ROWWISE_ADAGRAD,
            learning_rate=shape["learning_rate"],
            eps=shape["epsilon"],
            pooling_mode=PoolingMode.SUM,
        )
        for weights in self.tables.split_embedding_weights():
            weights.copy_(initial_rows())
        self.indices = [torch.from_numpy(batch.reshape(-1).copy()) for batch in ids]
        self.offsets = torch.arange(0, T * B * L + 1, L, dtype=torch.int64)

    def forward(self, batch):
        return self.tables(self.indices[batch], self.offsets)

    def train(self, batch):
        self.forward(batch).backward(gradient)


class EmbeddingBags:
    """A module for each table, sparse gradients, torch.optim.SGD."""

    def __init__(self):
        self.bags = []
        for _ in range(T):
            bag = torch.nn.EmbeddingBag(E, D, mode="sum", sparse=True, _weight=initial_rows())
            self.bags.append(bag)
        self.optimizer = torch.optim.SGD([bag.weight for bag in self.bags], lr=shape["learning_rate"])
        self.indices = [[torch.from_numpy(table.copy()) for table in batch] for batch in ids]
        self.offsets = torch.arange(0, B * L, L, dtype=torch.int64)
        self.gradients = [gradient[:, t * D : (t + 1) * D].contiguous() for t in range(T)]

    def outputs(self, batch):
        return [bag(i, self.offsets) for bag, i in zip(self.bags, self.indices[batch])]

    def forward(self, batch):
        return torch.cat(self.outputs(batch), dim=1)

    def train(self, batch):
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(self.outputs(batch), self.gradients)
        self.optimizer.step()


system = EmbeddingBags() if shape["rival"] == "torch_embeddingbag" else Tbe()


def check(batches):
    for batch in range(batches):
        system.train(batch)
    with torch.no_grad(), open(folder / "check.bin", "wb") as out:
        for batch in range(batches):
            system.forward(batch).numpy().tofile(out)
    return {}


def run(order):
    start = time.perf_counter()
    for batch in order:
        system.train(batch)
    return {"seconds": time.perf_counter() - start}


serve({"check": check, "run": run})
