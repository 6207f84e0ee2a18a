/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECORD_MEMORY_H
#define RECORD_MEMORY_H

/* Pieces of memory that live as long as the struct that was read into them. */

#include <stddef.h>

#include "record/record.h"

/* record_memory_get() - @n zeroed things of @size bytes; NULL: no memory */
void *record_memory_get(struct record_memory *memory, size_t n, size_t size);

#endif
