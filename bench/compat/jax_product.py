# SPDX-License-Identifier: Apache-2.0
"""JAX, with its own allocator switched to what a shared device needs."""
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax.numpy as jnp  # noqa: E402

from hold import hold  # noqa: E402

x = jnp.ones((2048, 2048))
hold("JAX", lambda: float((x @ x).sum()) == 2048.0 ** 3)
