/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_NOTE_H
#define CHECKPOINT_NOTE_H

/*
 * Notes on checkpointed processes, for the helper that restores them. Each note is a file in the run
 * directory, named by its process' number, start and PID namespace. So a later process with the same
 * number has no note, and a helper does not take a process for dead that it cannot see: containers may
 * share the directory.
 */

#include <stdbool.h>

/*
 * note_path() - write RUN/checkpoint/PID-START-NAMESPACE, in a folder that only we can change
 * @path:      has PATHS_MAX bytes
 * @can_make:  make the folder if it is missing
 * Errors: -ENOENT: there is no such process, or no folder.
 */
int note_path(char *path, int pid, bool can_make);

/* note_sweep() - remove the notes on processes that have ended. */
void note_sweep(void);

#endif
