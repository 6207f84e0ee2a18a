/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_ACTION_H
#define CHECKPOINT_ACTION_H

/* Actions: each carries out one request, from its group of processes to its answer. */

#include <stddef.h>

#include "wire/checkpoint.h"

/*
 * action_run() - do what @request says
 * @pidfds:  of the request's processes; taken
 * @socket:  to the library, for notes and to see it go
 */
void action_run(const struct checkpoint_wire_request *request, const int *pidfds, size_t n_pidfds,
                int socket, struct checkpoint_wire_answer *ret_answer);

#endif
