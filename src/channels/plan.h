/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHANNELS_PLAN_H
#define CHANNELS_PLAN_H

/*
 * A plan: what the keeper needs to let a process on its device again when the manager dies.
 *
 * A plan is a small memfd. The manager writes it, and the keeper holds it together with a
 * descriptor to act on. A change needs no message, so the plan is always up to date.
 */

#include <stdatomic.h>
#include <stdint.h>

#include "state/instance-page.h"

#define PLAN_MAGIC 0x4e414c50u /* "PLAN" */

enum plan_kind {
        PLAN_RESOURCE_MANAGER = 1, /* the descriptor is a pidfd of the process */
        PLAN_SIMULATED,            /* it is the simulated host's file; @offset: its word to clear */
};

struct plan {
        uint32_t magic;
        uint32_t kind;
        _Atomic uint32_t is_off; /* the process is held off, or is just being */
        _Atomic uint32_t n;      /* channels */
        _Atomic uint64_t offset;
        uint64_t reserved[5];
        struct instance_page_channel channel[INSTANCE_PAGE_CHANNELS];
};

/* plan_create() - a plan and its memfd. */
int plan_create(struct plan **ret_plan, int *ret_fd, enum plan_kind kind);
struct plan *plan_unmap(struct plan *plan);

/* plan_read() - a copy of the one in @fd. Errors: -EPROTO. */
int plan_read(int fd, struct plan *ret_plan);

/*
 * plan_undo() - let the process on the device if it is held off; @fd as the plan's kind says
 *
 * With an error it is held off still: try again.
 */
int plan_undo(const struct plan *plan, int fd);

#endif
