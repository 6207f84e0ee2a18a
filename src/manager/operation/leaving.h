/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_LEAVING_H
#define MANAGER_LEAVING_H

/* The steps with which memory leaves its device: what suspend and migrate have in common. */

#include <stdbool.h>

struct operation;

void leaving_close(struct operation *operation);
void leaving_undo_close(struct operation *operation);
/* leaving_ask_shared() - can all memory that the processes share come back? */
void leaving_ask_shared(struct operation *operation);
void leaving_export(struct operation *operation);
void leaving_undo_export(struct operation *operation);
void leaving_keep(struct operation *operation); /* what was exported, for the next manager */
void leaving_undo_keep(struct operation *operation);
void leaving_release(struct operation *operation);
void leaving_undo_release(struct operation *operation);

/*
 * leaving_may_checkpoint() - have all let go of their memory, and, if it leaves for others, does none of them stand still?
 * If one does, the operation fails: the driver would wait for that process, whatever time it is given. Whoever
 * is told to leave and is stopped meanwhile, as Slurm does it, may be continued by who told it.
 */
bool leaving_may_checkpoint(struct operation *operation);

/* leaving_drop() - let go of what was exported: nobody goes back to it. */
void leaving_drop(struct operation *operation);

#endif
