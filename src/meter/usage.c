/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/usage.h"

void usage_add(struct usage_amount *sum, const struct usage_amount *amount)
{
        for (int engine = 0; engine < METER_ENGINES; engine++)
                sum->busy_ns[engine] += amount->busy_ns[engine];
        sum->quota_mib_ms += amount->quota_mib_ms;
        sum->used_mib_ms += amount->used_mib_ms;
}

_Bool usage_is_zero(const struct usage_amount *amount)
{
        uint64_t any = amount->quota_mib_ms | amount->used_mib_ms;

        for (int engine = 0; engine < METER_ENGINES; engine++)
                any |= amount->busy_ns[engine];
        return any == 0;
}
