/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a program gets at driver functions other than by linking: it asks the driver. So do we, and
 * answer with our stub for the function that the driver chose; that is right for every name,
 * version and flag without a table of them. cuGetProcAddress itself is in the table like all others.
 *
 * A driver that is younger than the table may have a younger version of a function that we wrap, with other
 * parameters. It is answered as by a driver that lacks it: forwarded, it would get handles that are no driver's, and
 * make what nobody counts.
 *
 * cuGetExportTable() is passed through: its tables are undocumented and hold functions without
 * names. The CUDA runtime uses some of them, for its own bookkeeping and not to start work.
 */
#include "gate/entry.h"

#define STATUS_VERSION_NOT_SUFFICIENT 2

CUresult our_cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags)
{
        CUresult result = DRIVER(cuGetProcAddress)(symbol, function, version, flags);

        if (result != CUDA_SUCCESS || !function || !*function)
                return result;
        *function = entry_stub_for(*function, symbol);
        return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult our_cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                                 int *status)
{
        CUresult result = DRIVER(cuGetProcAddress_v2)(symbol, function, version, flags, status);

        if (result != CUDA_SUCCESS || !function || !*function)
                return result;
        *function = entry_stub_for(*function, symbol);
        if (!*function && status)
                *status = STATUS_VERSION_NOT_SUFFICIENT;
        return result;
}
