/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_CHECKPOINT_HELPER_H
#define LIB_CHECKPOINT_HELPER_H

/*
 * The helper process vgpu-checkpointer calls the driver for the library.
 *
 * The caller's program does not notice this child: its end raises no SIGCHLD, and no wait() for any
 * child returns it. It inherits no descriptor and has no terminal.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/checkpoint.h"

struct checkpoint_helper {
        int socket; /* -1: not started */
        int pidfd;
        bool is_holding; /* it will outlive the connection */
};

#define CHECKPOINT_HELPER_NONE ((struct checkpoint_helper){ .socket = -1, .pidfd = -1 })

/*
 * checkpoint_helper_start() - start the helper unless it runs. Errors: -ENOENT (it is not installed), those
 * of the kernel.
 */
int checkpoint_helper_start(struct checkpoint_helper *helper);

/* checkpoint_helper_stop() - close the connection; the helper then ends unless it holds a process. */
void checkpoint_helper_stop(struct checkpoint_helper *helper);

/* What a helper told before it died. */
struct checkpoint_helper_notes {
        size_t n;
        struct {
                int pid, state_before;
                uint64_t start;
                char call[48];    /* that has not returned; "": none */
                uint64_t most_ms; /* so long it takes at most; 0: nobody knows */
        } process[CHECKPOINT_PROCESSES_MAX];
        char call[48]; /* the last one, or that does not return */
        int pid;       /* of that one */
};

/*
 * checkpoint_helper_ask() - send @request, with a pidfd for each of its processes, and wait for the
 * answer. Errors: -ECONNRESET, the helper died; -ETIMEDOUT, a call of the driver does not return. @ret_notes says how
 * far it came.
 */
int checkpoint_helper_ask(struct checkpoint_helper *helper,
                          const struct checkpoint_wire_request *request, const int *pidfds,
                          struct checkpoint_wire_answer *ret_answer,
                          struct checkpoint_helper_notes *ret_notes);

#endif
