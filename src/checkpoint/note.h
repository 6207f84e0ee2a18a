/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_NOTE_H
#define CHECKPOINT_NOTE_H

/*
 * Notes on checkpointed processes, for whoever restores them: files in the run directory, each under
 * its process' number, start and PID namespace, so that a later process of that number has none, and
 * nobody takes a process for dead that he cannot see: containers may share the directory.
 */

#include <stdbool.h>

/*
 * note_path() - RUN/checkpoint/PID-START-NAMESPACE and @suffix, in a folder that only we can write to
 * @path:      of PATHS_MAX bytes
 * @can_make:  the folder
 * Errors: -ENOENT: no process, or no such folder.
 */
int note_path(char *path, int pid, const char *suffix, bool can_make);

/* note_name() - PID-START-NAMESPACE into @name of NOTE_NAME_MAX bytes. Errors: -ESRCH. */
#define NOTE_NAME_MAX 48
int note_name(char *name, int pid);

/*
 * note_sweep() - remove the notes on processes that have ended
 * @remove:  does it for those that have @suffix
 */
void note_sweep(const char *suffix, void (*remove)(const char *path));

#endif
