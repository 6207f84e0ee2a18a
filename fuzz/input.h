/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

/* What a target has been given, taken from its front. */

#include <stddef.h>
#include <stdint.h>

struct input {
        const uint8_t *data;
        size_t size;
};

/* take_byte() - 0 at the end */
static inline uint8_t take_byte(struct input *input)
{
        if (input->size == 0)
                return 0;
        input->size--;
        return *input->data++;
}

#endif
