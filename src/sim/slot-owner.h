/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_SLOT_OWNER_H
#define SIM_SLOT_OWNER_H

/*
 * Whose a slot of the simulated host is, as we number processes.
 *
 * A process in a container knows its own number only as its namespace has it. The kernel says who
 * holds the slot's record lock in the numbers of who asks: a system call, so it is made for slots of other
 * namespaces only.
 */

#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "sim/host-layout.h"

/* slot_owner_namespace() - return the number of our PID namespace; 0: it is not known. */
static inline uint32_t slot_owner_namespace(void)
{
        struct stat status;

        return stat("/proc/self/ns/pid", &status) == 0 ? (uint32_t)status.st_ino : 0;
}

/* slot_owner_is() - is the slot @number of @host that of the process @pid? @file is the host's, @ours our namespace */
static inline bool slot_owner_is(const struct host *host, uint32_t number, pid_t pid, int file,
                                 uint32_t ours)
{
        const struct host_slot *slot = &host->slot[number];
        struct flock record = {
                .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = number, .l_len = 1
        };

        if (slot->pid == 0 || slot->pid_namespace == ours || slot->pid_namespace == 0)
                return slot->pid == pid;
        return fcntl(file, F_GETLK, &record) == 0 && record.l_type != F_UNLCK &&
               record.l_pid == pid;
}

#endif
