/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_CHILD_H
#define GATE_CHILD_H

/*
 * The child of a fork has no other thread, no device memory and no slot in the vGPU, and must not
 * use its parent's. It starts clean. If the parent had initialised CUDA, the driver refuses the
 * child. Otherwise the child may join by itself, as a program that it executes does.
 */

/* child_watch() - once, when the process first uses the gate. */
void child_watch(void);

#endif
