/* SPDX-License-Identifier: Apache-2.0 */
#include "channels/plan.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "channels/resource-manager.h"

int plan_create(struct plan **ret_plan, int *ret_fd, enum plan_kind kind)
{
        CLEANUP(fd_closep) int fd = memfd_create("vgpu-plan", MFD_CLOEXEC);
        struct plan *plan;

        if (fd < 0 || ftruncate(fd, sizeof(*plan)) < 0)
                return -errno;
        plan = mmap(NULL, sizeof(*plan), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (plan == MAP_FAILED)
                return -errno;
        plan->magic = PLAN_MAGIC;
        plan->kind = kind;
        *ret_plan = plan;
        *ret_fd = TAKE_FD(fd);
        return 0;
}

struct plan *plan_unmap(struct plan *plan)
{
        if (plan)
                munmap(plan, sizeof(*plan));
        return NULL;
}

int plan_read(int fd, struct plan *ret_plan)
{
        ssize_t n = pread(fd, ret_plan, sizeof(*ret_plan), 0);

        if (n < 0)
                return -errno;
        if (n != sizeof(*ret_plan) || ret_plan->magic != PLAN_MAGIC ||
            ret_plan->n > INSTANCE_PAGE_CHANNELS)
                return -EPROTO;
        return 0;
}

static int undo_simulated(const struct plan *plan, int fd)
{
        const uint32_t zero = 0;

        if (plan->offset == 0)
                return 0;
        return pwrite(fd, &zero, sizeof(zero), (off_t)plan->offset) == sizeof(zero) ? 0 : -errno;
}

int plan_undo(const struct plan *plan, int fd)
{
        struct rm_process process = { .pidfd = fd };

        if (!plan->is_off)
                return 0;
        if (fault_point("plan.undo"))
                return -EIO;
        if (plan->kind == PLAN_SIMULATED)
                return undo_simulated(plan, fd);
        process.n = plan->n;
        for (uint32_t i = 0; i < process.n; i++)
                process.channel[i] = plan->channel[i];
        (void)rm_switch(&(struct rm_process *){ &process }, 1, NULL, 0, false);
        return process.error == -ESRCH ? 0 : process.error;
}
