# SPDX-License-Identifier: Apache-2.0
"""torch.compile, which runs kernels that Triton has made."""
import torch

from hold import hold


@torch.compile
def compiled(a, b):
    return torch.sin(a) * b + torch.relu(a - b)


torch.manual_seed(0)
a = torch.randn(1 << 20, device="cuda")
b = torch.randn(1 << 20, device="cuda")
expected = torch.sin(a) * b + torch.relu(a - b)
hold("torch.compile (Triton)", lambda: torch.allclose(compiled(a, b), expected, atol=1e-5))
