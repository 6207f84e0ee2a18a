/* SPDX-License-Identifier: Apache-2.0 */
#include "base/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>

#include "base/cleanup.h"

/* Half a MiB of the kernel's memory. */
#define EXPECTED 65536

void descriptors_make_room(void)
{
        CLEANUP(fd_closep) int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return;
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
        (void)getrlimit(RLIMIT_NOFILE, &limit);
        if (limit.rlim_cur > EXPECTED)
                limit.rlim_cur = EXPECTED;
        fd_close(fcntl(null, F_DUPFD_CLOEXEC, (int)limit.rlim_cur - 1));
}
