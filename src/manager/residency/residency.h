/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_RESIDENCY_H
#define MANAGER_RESIDENCY_H

/*
 * Scale to zero and return by demand: a vGPU whose owner has set a time leaves its device when it has
 * had no work for so long, and comes back when one of its programs wants the device.
 *
 * Both are ordinary operations (suspend and resume), with their undoing; nobody waits for their answer.
 * What decides is arithmetic of scheduler/stay.h. What a vGPU has for work its gates say in the instance
 * page (GATE_WATCH_REPORT). That a program wants the device its gate tells when the first of its threads
 * waits at the closed gate (GATE_WAITING), or it shows when a new process joins.
 *
 * Only a vGPU that has left by itself comes back by itself; that it has is in the store, written together
 * with its state. One that was suspended by hand stays where it is.
 *
 * One that finds no room waits, and is tried again: others that may leave by themselves leave early
 * for it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/failure.h"

struct instance;
struct manager;
struct residency;

int residency_new(struct residency **ret_residency, struct manager *manager);
struct residency *residency_free(struct residency *residency);

/* residency_set() - what the owner wants; @after_ms 0: never. InvalidParameter. */
int residency_set(struct instance *instance, uint64_t after_ms, bool keeps_context,
                  struct failure *failure);

/* residency_keep_off() - it has left by itself, and is from now on as one that was suspended by hand. */
int residency_keep_off(struct instance *instance, struct failure *failure);

#endif
