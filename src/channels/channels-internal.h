/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHANNELS_CHANNELS_INTERNAL_H
#define CHANNELS_CHANNELS_INTERNAL_H

/* For channels.c and simulated.c. */

#include "channels/channels.h"
#include "channels/plan.h"
#include "channels/resource-manager.h"
#include "sim/host-view.h"

struct channels_host {
        bool is_simulated;
        struct host_view simulated;
        bool is_joint;
};

struct channels {
        struct channels_host *host;
        pid_t pid;
        const struct instance_page_channels *told;
        uint32_t sequence; /* of @told, when it was read */
        struct rm_process process;
        struct plan *plan;
        int plan_fd;
        bool is_off;
        int error;
};

/* simulated_open() - open the host in @directory. Errors: -EPROTO. */
int simulated_open(struct channels_host *host, const char *directory);
void simulated_close(struct channels_host *host);

/* simulated_set() - hold the process off, or let it on. Errors: -ESRCH, it has no slot. */
int simulated_set(struct channels *channels, bool is_off);

#endif
