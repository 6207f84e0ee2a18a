/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_HAMMER_H
#define GATE_HAMMER_H

/*
 * For test-hooks.c: what each hook of the gate must bear, eight threads that call it at once while the
 * gate closes, moves the memory and opens. Under ThreadSanitizer and AddressSanitizer, too.
 */

#include "gate/fake-manager.h"

#define HAMMER_THREADS 8

struct hammer {
        const char *hooks; /* whose names are told apart by spaces; NULL: behind the last */

        /* Before there is a vGPU and a driver, or NULL. */
        void (*prepare)(void);

        /*
         * One stroke: calls the hooks, check()s the answers and gives back all that it took. The thread has
         * the primary context of device 0; @random is another number at each stroke.
         */
        void (*strike)(unsigned int thread, unsigned int random);

        /* After the threads, or NULL: gives back what prepare() took. */
        void (*finish)(void);
};

/* The groups: a file each, named in test-hooks.c. */
extern const struct hammer hammer_context[], hammer_memory[];

#endif
