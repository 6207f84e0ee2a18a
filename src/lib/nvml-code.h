/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_NVML_CODE_H
#define LIB_NVML_CODE_H

/* The meaning of NVML's codes, by the call and its subject. */

#include <openvgpu/error.h>

#include "lib/about.h"
#include "lib/nvml-calls.h"

struct nvml_code {
        nvmlReturn_t code;
        const char *name; /* "NOT_FOUND" */
        enum vgpu_error_kind kind;
        const char *meaning;
        const char *hint;
};

/* nvml_code_explain() - find what @code means. Never returns NULL. */
const struct nvml_code *nvml_code_explain(nvmlReturn_t code, enum about_kind about,
                                          const char *call);

#endif
