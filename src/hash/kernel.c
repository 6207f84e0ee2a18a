/* SPDX-License-Identifier: Apache-2.0 */
#include "hash-ptx.h"
#include "hash/hash.h"

const char *hash_get_kernel(void)
{
        return hash_ptx;
}
