/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/wake.h"

#include "gate/bell.h"
#include "gate/child.h"

static struct bell bell = BELL_INIT;

void wake_open(void)
{
        (void)bell_open(&bell);
}

int wake_get_fd(void)
{
        return bell_get_fd(&bell);
}

void wake_agent(void)
{
        bell_ring(&bell);
}

void wake_forget(void)
{
        bell_forget(&bell);
}
