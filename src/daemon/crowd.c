/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/crowd.h"

#include <malloc.h>

/* Fewer are not worth the time: a millisecond for some ten megabytes. */
#define CROWD_MIN 64

/* So many of them at most are left. */
#define REST_PART 4

void crowd_come(struct crowd *crowd)
{
        if (++crowd->n > crowd->most)
                crowd->most = crowd->n;
}

bool crowd_go(struct crowd *crowd)
{
        crowd->n--;
        if (crowd->most < CROWD_MIN || crowd->n > crowd->most / REST_PART)
                return false;
        crowd->most = crowd->n;
        (void)malloc_trim(0);
        return true;
}
