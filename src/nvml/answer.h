/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_ANSWER_H
#define NVML_ANSWER_H

/* Shared parts of many answers: texts and lists. */

#include "abi/nvml-vgpu.h"

/* answer_text() - @text into the caller's @size bytes at @to, or INSUFFICIENT_SIZE. */
nvmlReturn_t answer_text(char *to, unsigned int size, const char *text);

/*
 * answer_room() - the list protocol of most calls: *@count has the room, and gets what is needed.
 * INSUFFICIENT_SIZE when @n does not fit, also in no room at all; SUCCESS: write @n elements.
 */
nvmlReturn_t answer_room(unsigned int *count, unsigned int n);

/* answer_room_or_count() - the same, but a question with no room is a SUCCESS (session lists). */
nvmlReturn_t answer_room_or_count(unsigned int *count, unsigned int n);

/*
 * answer_numbers() - the @n numbers at @from by the protocol of answer_room(); INVALID_ARGUMENT
 * when there is no @count, or room but no array.
 */
nvmlReturn_t answer_numbers(unsigned int *count, unsigned int *to, const unsigned int *from,
                            unsigned int n);

#endif
