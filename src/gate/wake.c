/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/wake.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "gate/child.h"
#include "gate/log.h"

static _Atomic int wake = -1; /* eventfd */

void wake_open(void)
{
        int none = -1, fd = -1;

        if (atomic_load(&wake) < 0)
                fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (fd >= 0 && !atomic_compare_exchange_strong(&wake, &none, fd))
                fd_close(fd); /* another thread was faster */
}

int wake_get_fd(void)
{
        return wake;
}

void wake_agent(void)
{
        const uint64_t one = 1;

        if (wake >= 0 && write(wake, &one, sizeof(one)) < 0)
                log_write("cannot wake the agent");
}

void wake_forget(void)
{
        wake = fd_close(wake);
}
