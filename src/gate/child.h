/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_CHILD_H
#define GATE_CHILD_H

/*
 * The child of a fork has no other thread, no device memory and no slot in the vGPU, and must not
 * use its parent's. It starts clean. If the parent had initialised CUDA, the driver refuses the
 * child. Otherwise the child may join by itself, as a program that it executes does.
 *
 * A module that remembers something of its process has a function MODULE_forget() and a place in this
 * list. In the child, the functions are called in the order of the list.
 */

#define CHILD_FORGETS(X) \
        X(log)           \
        X(agent)         \
        X(move)          \
        X(turns)         \
        X(wake)          \
        X(idle)          \
        X(object)        \
        X(whole)         \
        X(join)          \
        X(quota)         \
        X(pool)          \
        X(pool_import)   \
        X(memory)        \
        X(reservation)   \
        X(offer)         \
        X(holding)       \
        X(graph)         \
        X(hook)          \
        X(vmm)           \
        X(import)        \
        X(ticket)        \
        X(context)       \
        X(finish)        \
        X(wait)          \
        X(capture)       \
        X(caller)

#define CHILD_FORGET(module) void module##_forget(void);
CHILD_FORGETS(CHILD_FORGET)
#undef CHILD_FORGET

/* child_watch() - watch for forks; called once, when the process first uses the gate. */
void child_watch(void);

#endif
