/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVER_LENDING_H
#define MOVER_LENDING_H

/*
 * What is lent of the mover's device to calls that movers of other devices make (MOVER_LEND). Each lending is of one
 * process and one kind of call. The manager may end one that a mover before this one began, and that end must not be
 * taken for another process'.
 */

#include <pthread.h>
#include <sys/types.h>

#include "mover/margin.h"
#include "wire/mover.h"

struct lending {
        struct lending *next;
        pid_t pid;
        enum mover_call call;
        struct margin_claim claim;
};

struct lendings {
        pthread_mutex_t lock;
        struct lending *first;
};

/* lending_new() - in no table yet. NULL: there is no memory for it. */
struct lending *lending_new(pid_t pid, enum mover_call call);
struct lending *lending_free(struct lending *lending);

/* lending_begin() - takes @lending over. */
void lending_begin(struct lendings *lendings, struct lending *lending);

/* lending_end() - the caller's now. NULL: there is none of @pid and @call. */
struct lending *lending_end(struct lendings *lendings, pid_t pid, enum mover_call call);

#endif
