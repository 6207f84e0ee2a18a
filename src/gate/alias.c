/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcuda.so: only a second name of the gate. Some programs (numba, NCCL) open the driver as
 * libcuda.so, which is not the gate's SONAME, and would get the real one. This library is loaded
 * with the gate (which needs it), has that name, and is a filter (DT_FILTER) for libcuda.so.1: what
 * is looked up in it is found in the gate.
 */

/* ISO C wants a declaration in a file. */
typedef int alias_nothing;
