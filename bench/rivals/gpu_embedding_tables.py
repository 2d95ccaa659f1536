# SPDX-License-Identifier: Apache-2.0
"""PyTorch's EmbeddingBag with sparse gradients and SGD on a GPU.

usage: gpu_embedding_tables.py FOLDER   with shape.json, ids.bin and sample.bin as `recmill bench` writes
"""
import array
import json
import pathlib
import sys

import torch

from protocol import serve

folder = pathlib.Path(sys.argv[1])
shape = json.loads((folder / "shape.json").read_text())
T, E, D, L, B = (shape[k] for k in ("tables", "rows", "dim", "lookups", "batches"))
device = torch.device("cuda")


def integers(name):
    return torch.frombuffer(bytearray((folder / name).read_bytes()), dtype=torch.int64).to(device)


def filled(pattern, first, rows):
    row = torch.arange(first, first + rows, device=device)[:, None] * pattern["by_row"]
    element = torch.arange(D, device=device)[None, :] * pattern["by_element"]
    return ((row + element) % pattern["modulus"] - pattern["less"]).float() * pattern["scale"]


ids = integers("ids.bin").reshape(B, T, L)
offsets = torch.arange(L, device=device)
gradients = [filled(shape["gradient_pattern"], t * L, L) for t in range(T)]
rows = filled(shape["row_pattern"], 0, E)
bags = [torch.nn.EmbeddingBag(E, D, mode="sum", sparse=True, _weight=rows.clone()) for _ in range(T)]
del rows
optimizer = torch.optim.SGD([bag.weight for bag in bags], lr=shape["learning_rate"])


def forward(batch):
    with torch.no_grad():
        return [bag(ids[batch, t], offsets) for t, bag in enumerate(bags)]


def train(batch):
    optimizer.zero_grad(set_to_none=True)
    torch.autograd.backward([bag(ids[batch, t], offsets) for t, bag in enumerate(bags)], gradients)
    optimizer.step()


def seconds(step, order):
    """By the GPU's clock, from the first kernel of a batch to the end of its last."""
    milliseconds = 0.0
    for batch in order:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        step(batch)
        end.record()
        end.synchronize()
        milliseconds += begin.elapsed_time(end)
    return {"seconds": milliseconds * 1e-3}


def check(_):
    train(0)
    sampled, at = integers("sample.bin"), 0
    with open(folder / "check.bin", "wb") as out:
        for bag, count in zip(bags, shape["sampled"]):
            found = bag.weight.detach()[sampled[at : at + count]]
            out.write(array.array("f", found.flatten().tolist()).tobytes())
            at += count
    return {}


serve({"check": check, "forward": lambda order: seconds(forward, order),
       "train": lambda order: seconds(train, order)})
