/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STATE_KIND_H
#define STATE_KIND_H

/*
 * Decides whether a vGPU can be on a device. Only this file has the rule: the manager follows it before a
 * move, and NVML's library answers by it for two blobs of metadata, which may come from other hosts. The
 * rule does not depend on what else is on the device at the moment.
 */

#include "state/state-page.h"

/* A vGPU can move between devices of one kind. */
struct state_kind {
        uint32_t pci_device_id, pci_subsystem_id;
        uint32_t is_sriov;
        state_switch ecc;
        char text[STATE_TEXT_MAX]; /* of what state_device_detail.metadata_text begins with */
};

/* A vGPU, as it asks for a device. */
struct state_claim {
        struct state_kind kind; /* of the device that it comes from */
        uint32_t type_id;       /* 0: any type of the device that holds the quota */
        uint64_t quota;         /* bytes */
};

/* A device, as it can be asked for. */
struct state_target {
        struct state_kind kind;
        uint64_t memory_total; /* bytes */
        uint32_t n_types;      /* that the device can host in its present MIG mode */
        uint32_t type_id[STATE_OFFERS_MAX];
};

/* Why a vGPU cannot be on a device, the first reason of several. */
enum state_misfit {
        STATE_FITS = 0,
        STATE_OTHER_KIND,
        STATE_OTHER_TYPES, /* the device does not host the vGPU's type */
        STATE_TOO_SMALL,
};

/* The three return false: there is no such device. */
bool state_read_kind(const struct state_page *state_page, uint32_t device,
                     struct state_kind *ret_kind);
bool state_read_claim(const struct state_page *state_page, const struct state_instance *instance,
                      struct state_claim *ret_claim);
bool state_read_target(const struct state_page *state_page, uint32_t device,
                       struct state_target *ret_target);

/* state_find_misfit() - say why the vGPU cannot be on the device. */
enum state_misfit state_find_misfit(const struct state_claim *claim,
                                    const struct state_target *target);

#endif
