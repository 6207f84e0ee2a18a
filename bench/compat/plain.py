# SPDX-License-Identifier: Apache-2.0
"""The driver's calls alone, as simulated GPUs have them: 64 MiB, of which half changes with each check."""
import array
import ctypes
import os

from hold import hold

PIECE, N = 2 << 20, 32
cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()


def must(result):
    if result != 0:
        raise RuntimeError(f"the driver says {result}")


def fill(i):
    must(cuda.cuMemsetD32_v2(pieces[i], ctypes.c_uint(words[i]), ctypes.c_size_t(PIECE // 4)))


def is_right(i):
    must(cuda.cuMemcpyDtoH_v2(ctypes.c_void_p(copy.buffer_info()[0]), pieces[i], ctypes.c_size_t(PIECE)))
    return copy.count(words[i]) == len(copy)


def check():
    right = all(is_right(i) for i in range(N))
    for i in range(0, N, 2):
        words[i] = (words[i] + 1) % 2**32
        fill(i)
    return right


must(cuda.cuInit(0))
must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
must(cuda.cuCtxSetCurrent(context))
copy = array.array("I", bytes(PIECE))
words = [(os.getpid() << 8) + i for i in range(N)]
pieces = [ctypes.c_uint64() for _ in range(N)]
for n, piece in enumerate(pieces):
    must(cuda.cuMemAlloc_v2(ctypes.byref(piece), ctypes.c_size_t(PIECE)))
    fill(n)
hold("the driver alone", check)
