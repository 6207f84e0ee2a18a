/* SPDX-License-Identifier: Apache-2.0 */
#include "image/data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void image_table_deinit(struct image_table *table)
{
        free(table->chunks);
        free(table->inherited);
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

int image_table_inherit(struct image_table *table)
{
        size_t size = (table->n_chunks + 1) * sizeof(*table->inherited);

        table->inherited = malloc(size);
        if (!table->inherited)
                return -ENOMEM;
        memset(table->inherited, 0xff, size); /* IMAGE_CHUNK_OWN */
        return 0;
}

bool image_table_is_inherited(const struct image_table *table, size_t chunk)
{
        return table->inherited && table->inherited[chunk] != IMAGE_CHUNK_OWN;
}

uint64_t image_table_sum_inherited(const struct image_table *table)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < table->n_chunks; i++)
                if (image_table_is_inherited(table, i))
                        sum += image_table_length(table, i);
        return sum;
}
