/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes as people write them: whatever is accepted, is shown and read again as about the same. */
#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/size.h"
#include "fuzz/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        CLEANUP(freep) char *text = strndup((const char *)data, size);
        char shown[SIZE_TEXT_MAX];
        uint64_t bytes, again;

        if (!text || size_parse(&bytes, text) < 0)
                return 0;
        size_format(shown, bytes);
        assert(strlen(shown) < sizeof(shown));
        if (size_parse(&again, shown) == 0) /* not near the end of the range: shown is rounded */
                assert(again / 2 <= bytes && bytes / 2 <= again);
        return 0;
}
