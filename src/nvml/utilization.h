/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_UTILIZATION_H
#define NVML_UTILIZATION_H

/*
 * What the calls for samples of utilization have in common.
 *
 * The manager takes one sample of everything at a time; its time stamp is that of all
 * elements. A sample is new if it is strictly newer than what the caller has seen, so a caller
 * that feeds back the newest stamp gets NOT_FOUND until there is another.
 */

#include <stdbool.h>

#include "board/board.h"
#include "nvml/answer.h"

/*
 * utilization_room() - @n samples are there, the caller has room for *@count at @samples. With a
 * NULL array the answer is the number, as INSUFFICIENT_SIZE, or SUCCESS when it is 0. SUCCESS with
 * an array: write *@count of them.
 */
nvmlReturn_t utilization_room(const void *samples, unsigned int *count, unsigned int n,
                              unsigned long long last_seen_us);

/* The processes of a device that did something in the last period: idle ones have no sample. */
bool utilization_next_busy(struct board_process *ret_process, uint32_t *cursor, uint32_t device);
unsigned int utilization_count_busy(uint32_t device);

#endif
