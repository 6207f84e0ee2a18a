# SPDX-License-Identifier: Apache-2.0
"""A PyTorch training run for bench/checkpoint: trains until SIGTERM, then checks what it holds.

usage: checkpoint-train.py COUNTER [WORKERS]

COUNTER is a file whose first 8 bytes count the steps. With WORKERS, batches come from that many
worker processes through pinned memory. Each step's loss must be finite, and a tensor that nothing
writes to must be as it was. Ends with status 0 if so.
"""
import mmap
import signal
import struct
import sys

import torch
from torch.utils.data import DataLoader, Dataset

workers = int(sys.argv[2]) if len(sys.argv) > 2 else 0
ending = []


class Numbers(Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        return torch.full((1024,), (index % 1000) / 1000)


def batches():
    if not workers:
        while True:
            yield torch.randn(256, 1024, device="cuda")
    while True:
        for batch in DataLoader(Numbers(), batch_size=256, num_workers=workers, pin_memory=True):
            yield batch.cuda(non_blocking=True)


def main():
    signal.signal(signal.SIGTERM, lambda *_: ending.append(1))
    with open(sys.argv[1], "w+b") as file:
        file.truncate(8)
        counter = mmap.mmap(file.fileno(), 8)
    model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(),
                                torch.nn.Linear(4096, 1024)).cuda()
    kept = torch.arange(1 << 24, device="cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    right, step = True, 0
    for inputs in batches():
        loss = ((model(inputs) - inputs) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right = right and bool(torch.isfinite(loss).item())
        step += 1
        counter[:] = struct.pack("q", step)
        if step == 3:
            print("ready", flush=True)
        if ending:
            break
    right = right and bool((kept == torch.arange(1 << 24, device="cuda")).all().item())
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
