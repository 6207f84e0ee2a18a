# SPDX-License-Identifier: Apache-2.0
"""CuPy: its own pool, and the driver's asynchronous pool."""
import cupy

from hold import hold

plain = cupy.arange(1 << 22, dtype=cupy.float64)
cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)
pooled = cupy.ones(1 << 22)
total = float((1 << 22) * ((1 << 22) - 1) // 2)
hold("CuPy with pools", lambda: float(plain.sum()) == total and float(pooled.sum()) == 1 << 22)
