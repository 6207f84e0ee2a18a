/* SPDX-License-Identifier: Apache-2.0 */
#include "state/kind.h"

#include <string.h>

bool state_read_kind(const struct state_page *state_page, uint32_t device,
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

/* The type of a live vGPU follows its quota; that of a scenario's is the one that it was made with. */
bool state_read_claim(const struct state_page *state_page, const struct state_instance *instance,
                      struct state_claim *ret_claim)
{
        *ret_claim = (struct state_claim){
                .type_id = instance->is_virtual ? instance->type_id : 0,
                .quota = instance->frame_buffer_quota,
        };
        return state_read_kind(state_page, instance->device, &ret_claim->kind);
}

/* A device in MIG mode hosts the types that a GPU instance is, and no others; without it, the others. */
bool state_read_target(const struct state_page *state_page, uint32_t device,
                       struct state_target *ret_target)
{
        struct state_device record;
        struct state_offers offers;
        struct state_type type;

        *ret_target = (struct state_target){ 0 };
        if (!state_read_kind(state_page, device, &ret_target->kind) ||
            !state_read_device(state_page, device, &record))
                return false;
        ret_target->memory_total = record.memory_total;
        if (!state_read_offers(state_page, state_site_of_device(device), &offers))
                return true;
        for (uint32_t i = 0; i < offers.n && i < STATE_OFFERS_MAX; i++)
                if (state_read_type(state_page, offers.offer[i].type, &type) &&
                    (type.profile_id != STATE_NONE) == (record.mig == 1))
                        ret_target->type_id[ret_target->n_types++] = type.id;
        return true;
}

static bool is_same_kind(const struct state_kind *a, const struct state_kind *b)
{
        return a->pci_device_id == b->pci_device_id && a->pci_subsystem_id == b->pci_subsystem_id &&
               a->is_sriov == b->is_sriov && a->ecc == b->ecc &&
               strncmp(a->text, b->text, sizeof(a->text)) == 0;
}

static bool hosts_type(const struct state_target *target, uint32_t type_id)
{
        for (uint32_t i = 0; i < target->n_types; i++)
                if (type_id == 0 || target->type_id[i] == type_id)
                        return true;
        return false;
}

enum state_misfit state_find_misfit(const struct state_claim *claim,
                                    const struct state_target *target)
{
        if (!is_same_kind(&claim->kind, &target->kind))
                return STATE_OTHER_KIND;
        if (claim->quota > target->memory_total)
                return STATE_TOO_SMALL;
        return hosts_type(target, claim->type_id) ? STATE_FITS : STATE_OTHER_TYPES;
}
