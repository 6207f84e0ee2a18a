# SPDX-License-Identifier: Apache-2.0
"""DataLoader: worker processes, pinned memory, asynchronous copies."""
import torch
from torch.utils.data import DataLoader, TensorDataset

from hold import hold


def check():
    data = DataLoader(TensorDataset(torch.arange(4096.)), batch_size=64, num_workers=2,
                      pin_memory=True)
    return sum(batch.cuda(non_blocking=True).sum().item() for (batch,) in data) == 4096 * 4095 / 2


if __name__ == "__main__":
    kept = torch.ones(1 << 20, device="cuda")
    hold("DataLoader", lambda: check() and kept.sum().item() == 1 << 20)
