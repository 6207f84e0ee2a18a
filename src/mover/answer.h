/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVER_ANSWER_H
#define MOVER_ANSWER_H

/*
 * What the mover says to the manager. Any thread may; each packet is whole.
 * A manager that is gone is noticed where we read: sending to it does nothing.
 */

#include <stddef.h>

#include "wire/mover.h"

/* answer_done() - the end of @request with @error; the rest of @done as it is. */
void answer_done(const struct mover_header *request, struct mover_done *done, int error);

void answer_info(const struct mover_header *request, struct mover_info *info);

/* answer_hashes() - all @n of them. */
void answer_hashes(const struct mover_header *request, const struct hash_value *values, size_t n);

/* answer_passed() - the first @n memories of the job are in the slabs, and let go. */
void answer_passed(const struct mover_header *request, size_t n);

/* answer_returned() - a call of the driver on @pid has returned that was not waited for any more. */
void answer_returned(int pid);

void answer_progress(const struct mover_header *request, uint64_t bytes_done, uint64_t bytes_total);

#endif
