/* SPDX-License-Identifier: Apache-2.0 */
#include "musl/refusal.h"

#define NVML_ERROR_DRIVER_NOT_LOADED 9

__attribute__((used)) static int refuse(void)
{
        refusal_say();
        return NVML_ERROR_DRIVER_NOT_LOADED;
}

/* The only one whose result is no code. */
REFUSAL_EXPORT const char *nvmlErrorString(int result);
const char *nvmlErrorString(int result)
{
        return result == NVML_ERROR_DRIVER_NOT_LOADED ? "vGPUs need glibc" : "Unknown Error";
}

#define NVML_NAME(name) REFUSAL_EXPORT int name(void) __attribute__((alias("refuse")));
#include "nvml-names.inc"
