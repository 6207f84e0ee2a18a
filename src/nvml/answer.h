/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_ANSWER_H
#define NVML_ANSWER_H

/* Many answers share these parts: texts and lists. */

#include "abi/nvml-vgpu.h"

/* answer_text() - copy @text into the caller's @size bytes at @to, or answer INSUFFICIENT_SIZE. */
nvmlReturn_t answer_text(char *to, unsigned int size, const char *text);

/*
 * answer_room() - follow the list protocol of most calls: *@count has the room, and gets the number of
 * elements. INSUFFICIENT_SIZE: @n elements do not fit, or there is no room. SUCCESS: write @n elements.
 */
nvmlReturn_t answer_room(unsigned int *count, unsigned int n);

/* answer_room_or_count() - do the same, but answer SUCCESS if there is no room (session lists). */
nvmlReturn_t answer_room_or_count(unsigned int *count, unsigned int n);

/*
 * answer_numbers() - copy the @n numbers at @from by the protocol of answer_room(). INVALID_ARGUMENT:
 * there is no @count, or there is room but no array.
 */
nvmlReturn_t answer_numbers(unsigned int *count, unsigned int *to, const unsigned int *from,
                            unsigned int n);

#endif
