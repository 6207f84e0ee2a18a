/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_REFRESH_H
#define MANAGER_REFRESH_H

/*
 * The clean copy (clean-copy.h) of a process without work is brought up to date, so that it leaves quickly
 * although it has changed. No operation: nobody sees it, the store does not know it, and it may end anywhere.
 *
 *     close the gate -> export -> copy, slowly, what differs -> drop the exported -> open the gate
 *
 * The gate is closed meanwhile: so the copy of a block and its hash are of the same moment, memory that the
 * program frees is free when the call returns, and nothing has to be looked after that changes while it is
 * copied. The first thread that comes to the gate ends the refresh, and waits for that: a piece of the copy,
 * and the mover's letting go of the memory. What was copied counts all the same.
 *
 * Whether the gate was closed all the time is known when it answers OPEN over the same connection: one that
 * loses it opens by itself. Without that answer nothing of the copy is believed, nor when another process has got
 * some of the memory meanwhile, for that may write to it.
 *
 * One process of a device at a time. Every operation, on whatever device, ends all of them, and waits until they
 * have let go of the mover and of their room in the pool. While it copies ahead (ahead.h), which may take long, others
 * may begin on other devices: they are ended once more before its gates close.
 */

#include <stdbool.h>
#include <stdint.h>

struct guest;
struct manager;
struct operation;

/* refresh_can() - has it a copy that could be brought up to date, here and now? */
bool refresh_can(const struct guest *guest);

/* refresh_is_due() - has it had work, or other memory, since its copy was what it is? @now: CLOCK_MONOTONIC. */
bool refresh_is_due(const struct guest *guest, uint64_t now);

/* refresh_start() - false: it cannot be, or there is no memory. */
bool refresh_start(struct guest *guest);

/* refresh_stop_all() - soon. */
void refresh_stop_all(struct manager *manager);

/* refresh_must_wait() - has one of them something that @operation needs? It is woken when that is over. */
bool refresh_must_wait(const struct operation *operation);

/* refresh_subscribe() - once: to those who want their vGPU, and to those who end. */
void refresh_subscribe(struct manager *manager);

#endif
