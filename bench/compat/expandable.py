# SPDX-License-Identifier: Apache-2.0
"""PyTorch's expandable segments: an allocator that uses the driver's virtual memory itself."""
import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"

import torch  # noqa: E402  (the allocator reads the variable when it is imported)

from hold import hold  # noqa: E402

torch.manual_seed(0)
tensors = [torch.randn(1 << 24, device="cuda") for _ in range(8)]
expected = [t.double().sum().item() for t in tensors]
hold("expandable segments", lambda: [t.double().sum().item() for t in tensors] == expected)
