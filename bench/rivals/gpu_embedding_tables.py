# SPDX-License-Identifier: Apache-2.0
"""Lookups of embedding tables on a GPU, and updates by their gradients: SGD and Adam by PyTorch's Embedding and
EmbeddingBag, SGD by Triton.

usage: gpu_embedding_tables.py FOLDER torch_embeddingbag|torch_embedding|triton [DEVICE]
FOLDER has shape.json, ids.bin and sample.bin as `recmill bench` writes them. DEVICE: cuda; on cpu, where Triton's
interpreter is taken, answers are checked and nothing is timed.
"""
import array
import json
import math
import os
import pathlib
import sys

import torch

from protocol import serve

folder, system = pathlib.Path(sys.argv[1]), sys.argv[2]
device = torch.device(sys.argv[3] if len(sys.argv) > 3 else "cuda")
shape = json.loads((folder / "shape.json").read_text())
T, E, D, L, B = (shape[k] for k in ("tables", "rows", "dim", "lookups", "batches"))


def integers(name):
    return torch.frombuffer(bytearray((folder / name).read_bytes()), dtype=torch.int64).to(device)


def filled(pattern, rows):
    """[rows, D] that `pattern` has at those rows."""
    row = rows[:, None] * pattern["by_row"]
    element = torch.arange(D, device=device)[None, :] * pattern["by_element"]
    return ((row + element) % pattern["modulus"] - pattern["less"]).float() * pattern["scale"]


class Embeddings:
    """PyTorch's Embedding with sparse gradients and its SGD or SparseAdam."""

    def __init__(self, rows, ids, gradients, optimizer):
        self.ids, self.gradients = ids, list(gradients)
        self.modules = [self.module(of_table) for of_table in rows]
        weights, rate = [module.weight for module in self.modules], optimizer["learning_rate"]
        if optimizer["kind"] == "sgd":
            self.optimizer = torch.optim.SGD(weights, lr=rate)
        elif optimizer["kind"] == "adam":
            # SparseAdam adds epsilon before it corrects the root's bias: so it is ours at the first step.
            epsilon = optimizer["epsilon"] * math.sqrt(1 - optimizer["beta2"])
            self.optimizer = torch.optim.SparseAdam(weights, lr=rate, betas=(optimizer["beta1"], optimizer["beta2"]),
                                                    eps=epsilon)
        else:
            raise ValueError(f"no optimizer '{optimizer['kind']}'")

    @staticmethod
    def module(rows):
        return torch.nn.Embedding(E, D, sparse=True, _weight=rows)

    def looked_up(self, batch):
        return [module(self.ids[batch, t]) for t, module in enumerate(self.modules)]

    def forward(self, batch):
        """[tables] of [lookups, dim]."""
        with torch.no_grad():
            return self.looked_up(batch)

    def train(self, batch):
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(self.looked_up(batch), self.gradients)
        self.optimizer.step()

    def rows(self, table):
        return self.modules[table].weight.detach()


class EmbeddingBags(Embeddings):
    """The same with EmbeddingBag, of bags of one lookup."""

    offsets = torch.arange(L, device=device)

    @staticmethod
    def module(rows):
        return torch.nn.EmbeddingBag(E, D, mode="sum", sparse=True, _weight=rows)

    def looked_up(self, batch):
        return [module(self.ids[batch, t], self.offsets) for t, module in enumerate(self.modules)]


def make_tables():
    if system == "triton" and shape["optimizer"]["kind"] == "sgd":
        if device.type == "cpu":
            os.environ["TRITON_INTERPRET"] = "1"  # before kernels are defined
        from triton_tables import TritonTables as Tables
    elif system in ("torch_embeddingbag", "torch_embedding"):
        Tables = EmbeddingBags if system == "torch_embeddingbag" else Embeddings
    else:
        raise ValueError(f"no system '{system}' with this optimizer")
    first = filled(shape["row_pattern"], torch.arange(E, device=device))
    rows = first.expand(T, E, D).contiguous()
    gradients = torch.stack([filled(shape["gradient_pattern"], torch.arange(t * L, t * L + L, device=device))
                             for t in range(T)])
    return Tables(rows, ids, gradients, shape["optimizer"])


def check(_):
    """Every lookup of batch 0, then a sample of rows after an update by it, which are written."""
    global tables
    tables = make_tables()
    for t, found in enumerate(tables.forward(0)):
        if not torch.equal(found, filled(shape["row_pattern"], ids[0, t])):
            raise ValueError(f"its lookups of table t{t} are others")
    tables.train(0)
    sampled, at = integers("sample.bin"), 0
    with open(folder / "check.bin", "wb") as out:
        for t, count in enumerate(shape["sampled"]):
            found = tables.rows(t)[sampled[at : at + count]]
            out.write(array.array("f", found.flatten().tolist()).tobytes())
            at += count
    return {}


def seconds(step, order):
    """By the GPU's clock, from before a batch's first kernel is launched to the end of its last."""
    milliseconds = 0.0
    for batch in order:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        step(batch)
        end.record()
        end.synchronize()
        milliseconds += begin.elapsed_time(end)
    return {"seconds": milliseconds * 1e-3}


ids = integers("ids.bin").reshape(B, T, L)
serve({"check": check, "forward": lambda order: seconds(tables.forward, order),
       "train": lambda order: seconds(tables.train, order)})
