/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_LEAVE_H
#define GATE_LEAVE_H

/*
 * A signal handler of the program that has interrupted a call of the driver, or a wait of the gate, may leave it by
 * longjmp(), or end its thread. Nothing of it returns then: the call would count for ever, and every suspend would wait for it.
 *
 * The gate finds longjmp() and pthread_exit() before the C library does (jump.c), and so learns of it in time: whatever lies on
 * the part of the stack that is given up is undone. What must be undone is said here, by a record on the stack; the calls
 * themselves are those of caller.h.
 */

#include <stdbool.h>
#include <stdint.h>

struct leave {
        void (*undo)(struct leave *leave);
        struct leave *outer;
};

/* leave_begin() - from here to leave_end(), being left means that @undo is to be called. */
void leave_begin(struct leave *leave, void (*undo)(struct leave *leave));
void leave_end(struct leave *leave);

struct leave_jump {
        uintptr_t target;                 /* the stack pointer there */
        uintptr_t handlers, handlers_end; /* the stack of handlers, if the thread is on it */
};

/* leave_jump_to() - the jump of the calling thread to where its stack pointer is @target. */
struct leave_jump leave_jump_to(uintptr_t target);

/* leave_is_left() - does what lies at @address of the thread's stacks go with the jump? */
bool leave_is_left(const struct leave_jump *jump, uintptr_t address);

/* leave_is_any() - is anything to be undone? leave_undo() - undo what goes with the jump. */
bool leave_is_any(void);
void leave_undo(const struct leave_jump *jump);

#endif
