/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_GATES_H
#define MANAGER_GATES_H

/*
 * One request to the gates of all guests of an operation, as far as their states
 * ask for it, with what their answers mean for the operation.
 *
 * A guest that dies meanwhile is no failure: its part is over.
 */

struct operation;

void gates_close(struct operation *operation);   /* those that are open */
void gates_export(struct operation *operation);  /* all; fills guest->memory */
void gates_release(struct operation *operation); /* those that have their memory mapped */
void gates_create(struct operation *operation);  /* those that have released it */
void gates_map(struct operation *operation);     /* likewise, and whose context runs */
void gates_open(struct operation *operation);    /* those that are closed with memory mapped */

#endif
