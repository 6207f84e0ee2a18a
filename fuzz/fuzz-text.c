/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign text made fit to be shown: always within its room, always without control characters. */
#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "fuzz/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        size_t room = size ? data[0] + 1u : 1;
        CLEANUP(freep) char *text = size ? strndup((const char *)data + 1, size - 1) : NULL;
        CLEANUP(freep) char *clean = malloc(room);

        if (!text || !clean)
                return 0;
        text_clean(clean, room, text);
        assert(strlen(clean) < room);
        for (const char *c = clean; *c; c++)
                assert((unsigned char)*c >= 0x20 && *c != 0x7f);
        assert(text_width(clean) <= strlen(clean));
        (void)text_distance(clean, text);
        return 0;
}
