/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/ticket.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "gate/child.h"
#include "gate/link.h"
#include "gate/quota.h"

/* Declared by <fcntl.h> only for newer C libraries than we may need. */
#ifndef F_ADD_SEALS
#define F_ADD_SEALS   1033
#define F_GET_SEALS   1034
#define F_SEAL_SEAL   1
#define F_SEAL_SHRINK 2
#define F_SEAL_GROW   4
#define F_SEAL_WRITE  8
#endif

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* That of this process' tickets, and 1. Who joins anew may get another slot, but tickets are out already. */
static _Atomic uint32_t ticket_slot;

uint32_t ticket_get_slot(void)
{
        return atomic_load(&ticket_slot);
}

bool ticket_identify(struct gate_ticket *ticket)
{
        uint32_t slot, none = 0;

        memset(ticket, 0, sizeof(*ticket));
        if (!quota_get_page(&slot) || !link_get_vgpu(ticket->process.vgpu))
                return false;
        (void)atomic_compare_exchange_strong(&ticket_slot, &none, slot + 1);
        ticket->process.slot = atomic_load(&ticket_slot) - 1;
        ticket->process.mark = GATE_TICKET_MARK;
        ticket->process.start_time = link_get_start_time();
        return true;
}

bool ticket_is_own(const struct gate_ticket *ticket)
{
        struct gate_ticket own;

        return ticket_identify(&own) &&
               memcmp(&own.process, &ticket->process, sizeof(own.process)) == 0;
}

bool ticket_is(const struct gate_ticket *ticket)
{
        return ticket->process.mark == GATE_TICKET_MARK;
}

int ticket_to_fd(const struct gate_ticket *ticket)
{
        CLEANUP(fd_closep)
        int fd = (int)syscall(SYS_memfd_create, "openvgpu-ticket", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        if (fd < 0)
                return -errno;
        if (pwrite(fd, ticket, sizeof(*ticket), 0) != (ssize_t)sizeof(*ticket) ||
            fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL) < 0)
                return -errno;
        return TAKE_FD(fd);
}

/* Only a memfd has seals: of a descriptor of the driver's nothing is read. */
bool ticket_from_fd(struct gate_ticket *ret_ticket, int fd)
{
        int seals = fcntl(fd, F_GET_SEALS);
        struct stat status;

        return seals >= 0 && (seals & SEALS) == SEALS && fstat(fd, &status) == 0 &&
               status.st_size == sizeof(*ret_ticket) &&
               pread(fd, ret_ticket, sizeof(*ret_ticket), 0) == (ssize_t)sizeof(*ret_ticket) &&
               ticket_is(ret_ticket);
}

int ticket_make_name(uint8_t name[GATE_NAME_SIZE])
{
        ssize_t n;

        do
                n = syscall(SYS_getrandom, name, GATE_NAME_SIZE, 0);
        while (n < 0 && errno == EINTR);
        return n == GATE_NAME_SIZE ? 0 : -errno;
}

void ticket_forget(void)
{
        atomic_store(&ticket_slot, 0);
}
