/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a program gets at driver functions other than by linking: it asks the driver. So do we, and
 * answer with our stub for the function that the driver chose; that is right for every name,
 * version and flag without a table of them. cuGetProcAddress itself is in the table like all others.
 *
 * cuGetExportTable() is passed through: its tables are undocumented and hold functions without
 * names. The CUDA runtime uses some of them, for its own bookkeeping and not to start work.
 */
#include "gate/entry.h"

CUresult our_cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags)
{
        CUresult result = DRIVER(cuGetProcAddress)(symbol, function, version, flags);

        if (result == CUDA_SUCCESS && function && *function)
                *function = entry_stub_for(*function, symbol);
        return result;
}

CUresult our_cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                                 int *status)
{
        CUresult result = DRIVER(cuGetProcAddress_v2)(symbol, function, version, flags, status);

        if (result == CUDA_SUCCESS && function && *function)
                *function = entry_stub_for(*function, symbol);
        return result;
}
