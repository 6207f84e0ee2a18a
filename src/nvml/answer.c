/* SPDX-License-Identifier: Apache-2.0 */
#include "nvml/answer.h"

#include <stdbool.h>
#include <string.h>

nvmlReturn_t answer_text(char *to, unsigned int size, const char *text)
{
        size_t n = strlen(text) + 1;

        if (n > size)
                return NVML_ERROR_INSUFFICIENT_SIZE;
        memcpy(to, text, n);
        return NVML_SUCCESS;
}

nvmlReturn_t answer_room(unsigned int *count, unsigned int n)
{
        unsigned int room = *count;

        *count = n;
        return n > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

nvmlReturn_t answer_room_or_count(unsigned int *count, unsigned int n)
{
        bool asks = *count == 0;
        nvmlReturn_t r = answer_room(count, n);

        return asks ? NVML_SUCCESS : r;
}

nvmlReturn_t answer_numbers(unsigned int *count, unsigned int *to, const unsigned int *from,
                            unsigned int n)
{
        nvmlReturn_t r;

        if (!count || (!to && *count > 0))
                return NVML_ERROR_INVALID_ARGUMENT;
        r = answer_room(count, n);
        if (r == NVML_SUCCESS && n > 0)
                memcpy(to, from, n * sizeof(*to));
        return r;
}
