/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_LEAVE_H
#define GATE_LEAVE_H

/*
 * A signal handler of the program that has interrupted a call of the driver, or a wait of the gate, may leave it by
 * longjmp(). Nothing of it returns then: the call would count for ever, and every suspend would wait for it.
 *
 * The gate finds longjmp() before the C library does (jump.c), and so learns of it in time: whatever lies on the
 * part of the stack that is given up is undone. What must be undone is said here, by a record on the stack; the calls
 * themselves are those of caller.h.
 */

#include <stdint.h>

struct leave {
        void (*undo)(struct leave *leave);
        struct leave *outer;
};

/* leave_begin() - from here to leave_end(), being left means that @undo is to be called. */
void leave_begin(struct leave *leave, void (*undo)(struct leave *leave));
void leave_end(struct leave *leave);

/* leave_jump() - the thread is about to jump to where its stack pointer is @target. */
void leave_jump(uintptr_t target);

#endif
