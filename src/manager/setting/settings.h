/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_SETTINGS_H
#define MANAGER_SETTINGS_H

/*
 * Settings: what NVML's Set functions change. They are kept on the state page, which is theirs to
 * write from the publisher's start on, and in the store, so that a new manager goes on with them.
 *
 * Those of a host or a site last until the driver is loaded anew, as NVIDIA's do; the encoder
 * capacity stays with its vGPU.
 *
 * When a change is refused is NVML's rule: docs/control-protocol.md.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/failure.h"
#include "state/state-page.h"

struct device;
struct instance;
struct manager;

/* A device as a whole, or a GPU instance on it. */
struct settings_site {
        struct device *device;
        uint32_t gpu_instance; /* its id; STATE_NONE: the device as a whole */
        uint32_t site;         /* on the state page */
};

/* settings_find_site() - InvalidParameter (gpu_instance) when there is none of this id. */
int settings_find_site(struct manager *manager, struct device *device, uint32_t gpu_instance,
                       struct settings_site *ret_site, struct failure *failure);

struct settings_scheduler {
        uint32_t engine; /* enum state_engine */
        uint32_t policy; /* enum state_policy */
        uint32_t arr;    /* enum state_arr */
        /* 0: the default. With ARR the first two count, else the last. */
        uint32_t averaging_factor, frequency, time_slice;
        /*
         * Not NVML's rules but ours: vGPUs without processes are no obstacle, and a time slice counts
         * under best effort too, for the turns that shares need.
         */
        bool is_ours;
};

int settings_set_scheduler(struct manager *manager, const struct settings_site *site,
                           const struct settings_scheduler *wanted,
                           struct state_scheduler *ret_scheduler, struct failure *failure);
int settings_set_heterogeneous(struct manager *manager, const struct settings_site *site,
                               bool is_heterogeneous, struct failure *failure);
int settings_set_capability(struct manager *manager, struct device *device, uint32_t capability,
                            bool enabled, struct failure *failure);
int settings_set_version_range(struct manager *manager, uint32_t min, uint32_t max,
                               struct state_host *ret_host, struct failure *failure);
/* settings_set_share() - of the time of its device, in percent; 0: none. */
int settings_set_share(struct instance *instance, uint32_t share, struct failure *failure);

int settings_set_encoder_capacity(struct instance *instance, uint32_t percent,
                                  struct failure *failure);

/*
 * settings_check_size() - may a vGPU of @bytes be on @device beside those that are there, but
 * @except? Unsupported: heterogeneous mode is off, and they are of another type.
 */
int settings_check_size(const struct device *device, uint64_t bytes, const struct instance *except,
                        struct failure *failure);

/* settings_check_percent() - InvalidParameter above 100. */
int settings_check_percent(uint32_t percent, struct failure *failure);

/* settings_clear_accounting() - drop the records of processes that ended in the vGPU @id. */
int settings_clear_accounting(struct manager *manager, uint32_t id, uint32_t *ret_cleared,
                              struct failure *failure);

/* settings_fill_scheduler() - what @wanted, which is checked, means with the defaults filled in. */
void settings_fill_scheduler(struct state_scheduler *ret_scheduler,
                             const struct settings_scheduler *wanted, bool can_arr);

/* settings_restore() - what the store has; on a state page that was just made. */
int settings_restore(struct manager *manager);

#endif
