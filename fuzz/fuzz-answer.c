/* SPDX-License-Identifier: Apache-2.0 */
/* A manager's answer, as our NVML library walks through it; a cut one is never a success. */
#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "fuzz/target.h"
#include "nvml/control-answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        CLEANUP(freep) char *text = strndup((const char *)data, size);

        if (!text)
                return 0;
        if (control_answer_get_code(text) == NVML_SUCCESS)
                assert(strchr(text, '{') && strchr(text, '}'));
        return 0;
}
