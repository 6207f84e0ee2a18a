/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FAKE_MANAGER_H
#define FAKE_MANAGER_H

/*
 * A manager that says what a test tells it to say, right or wrong.
 *
 * A thread of the test listens on control.sock in a folder of its own and goes through a list of
 * steps, one for each call that arrives on whatever connection. In answers, and in the calls that it
 * remembers, ' stands for ", so that JSON can be read in C.
 */

#include <stddef.h>

#define FAKE_ANSWERS_MAX 6

struct fake_step {
        const char *method; /* without prefix; another one is answered with Failed; NULL: any */
        const char *answers[FAKE_ANSWERS_MAX]; /* messages; none: silence */
        const char *cut;                       /* then this, without its NUL */
        size_t junk;                           /* then so many letters */
        void (*before)(void);                  /* called before answering, in the fake's thread */
        int hang_up;                           /* then close the connection */
};

struct fake_manager;

/* fake_manager_new() - start it; @steps are borrowed. Aborts the test when it cannot. */
struct fake_manager *fake_manager_new(const struct fake_step *steps, size_t n_steps);

/* fake_manager_free() - end it and remove its folder; NULL is fine. Returns NULL. */
struct fake_manager *fake_manager_free(struct fake_manager *fake);

/* fake_manager_get_directory() - the run directory for clients; borrowed. */
const char *fake_manager_get_directory(const struct fake_manager *fake);

/* fake_manager_get_call() - the text of the @i-th call, "" if it has not come; borrowed. */
const char *fake_manager_get_call(struct fake_manager *fake, size_t i);

#endif
