/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_DEPARTURE_H
#define MANAGER_DEPARTURE_H

/* The steps with which memory leaves its device: what suspend and migrate have in common. */

struct operation;

void departure_close(struct operation *operation);
void departure_undo_close(struct operation *operation);
void departure_export(struct operation *operation);
void departure_undo_export(struct operation *operation);
void departure_keep(struct operation *operation); /* what was exported, for the next manager */
void departure_undo_keep(struct operation *operation);
void departure_release(struct operation *operation);
void departure_undo_release(struct operation *operation);

/* departure_drop() - let go of what was exported: nobody goes back to it. */
void departure_drop(struct operation *operation);

#endif
