/* SPDX-License-Identifier: Apache-2.0 */
#include "image/data.h"

#include <stdlib.h>

void image_table_deinit(struct image_table *table)
{
        free(table->chunks);
        *table = (struct image_table){ 0 };
}

size_t image_table_count(uint64_t size, uint32_t chunk_size)
{
        return (size_t)(size / chunk_size + (size % chunk_size != 0));
}

size_t image_table_length(const struct image_table *table, size_t chunk)
{
        uint64_t left = table->size - (uint64_t)chunk * table->chunk_size;

        return left < table->chunk_size ? (size_t)left : table->chunk_size;
}
