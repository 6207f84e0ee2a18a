/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_ACTION_H
#define CHECKPOINT_ACTION_H

/* Actions: each carries out one request, from its group of processes to its answer. */

#include <stddef.h>

#include "wire/checkpoint.h"

/*
 * action_run() - carry out @request
 * @pidfds:  refer to the request's processes; action_run() takes them
 * @socket:  leads to the library: for notes, and to see when it goes
 */
void action_run(const struct checkpoint_wire_request *request, const int *pidfds, size_t n_pidfds,
                int socket, struct checkpoint_wire_answer *ret_answer);

#endif
