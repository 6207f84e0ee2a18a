# SPDX-License-Identifier: Apache-2.0
"""A PyTorch training run that can be compared bit by bit with another one.

usage: train.py STEPS LOSSES [BALLAST_GIB]

Writes each loss as a hexadecimal floating-point number to LOSSES as it goes.
BALLAST_GIB further GiB are filled at the start and checked at the end. Ends with
one line: steps a second, the longest step, wrong ballast, memory reserved.
"""
import sys
import time

import torch

steps, losses_path = int(sys.argv[1]), sys.argv[2]
ballast_gib = int(sys.argv[3]) if len(sys.argv) > 3 else 0

torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
torch.backends.cuda.matmul.allow_tf32 = False

model = torch.nn.Sequential(
    torch.nn.Linear(4096, 8192), torch.nn.GELU(),
    torch.nn.Linear(8192, 8192), torch.nn.GELU(),
    torch.nn.Linear(8192, 4096)).cuda()
ballast = [torch.full((1 << 28,), float(i), device="cuda") for i in range(ballast_gib)]
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

WARM_UP = 20
longest = 0.0
with open(losses_path, "w", buffering=1) as losses:
    for step in range(steps):
        begin = time.perf_counter()
        if step == WARM_UP:
            started = begin
        inputs = torch.randn(256, 4096, device="cuda")
        targets = torch.randn(256, 4096, device="cuda")
        loss = ((model(inputs) - targets) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.write(f"{step} {loss.item().hex()}\n")
        if step >= WARM_UP:
            longest = max(longest, time.perf_counter() - begin)
torch.cuda.synchronize()
elapsed = time.perf_counter() - started

wrong = sum(int((b != float(i)).any().item()) for i, b in enumerate(ballast))
print(f"{(steps - WARM_UP) / elapsed:.3f} steps/s, longest {longest:.3f} s, wrong ballast {wrong}, "
      f"reserved {torch.cuda.memory_reserved() / 2**30:.2f} GiB", flush=True)
