/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STATE_KIND_H
#define STATE_KIND_H

/*
 * A vGPU can move between devices of one kind. Only this file defines a kind: the manager asks it
 * before a move, and NVML's library for the metadata.
 */

#include <string.h>

#include "state/state-page.h"

struct state_kind {
        uint32_t pci_device_id, pci_subsystem_id;
        uint32_t is_sriov;
        state_switch ecc;
        char text[STATE_TEXT_MAX]; /* of what state_device_detail.metadata_text begins with */
};

/* state_read_kind() - what the state page says of @device; false: there is no such device. */
static inline bool state_read_kind(const struct state_page *state_page, uint32_t device,
                                   struct state_kind *ret_kind)
{
        struct state_device_detail detail;
        struct state_device record;

        if (!state_read_device(state_page, device, &record) ||
            !state_read_device_detail(state_page, device, &detail))
                return false;
        *ret_kind = (struct state_kind){
                .pci_device_id = record.pci_device_id,
                .pci_subsystem_id = record.pci_subsystem_id,
                .is_sriov = record.is_sriov,
                .ecc = record.ecc,
        };
        memcpy(ret_kind->text, detail.metadata_text, sizeof(ret_kind->text) - 1);
        return true;
}

static inline bool state_is_same_kind(const struct state_kind *a, const struct state_kind *b)
{
        return a->pci_device_id == b->pci_device_id && a->pci_subsystem_id == b->pci_subsystem_id &&
               a->is_sriov == b->is_sriov && a->ecc == b->ecc &&
               strncmp(a->text, b->text, sizeof(a->text)) == 0;
}

#endif
