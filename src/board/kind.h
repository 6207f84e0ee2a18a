/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BOARD_KIND_H
#define BOARD_KIND_H

/*
 * A vGPU can move between devices of one kind. Only this file defines a kind: the manager asks it
 * before a move, and NVML's library for the metadata.
 */

#include <string.h>

#include "board/board.h"

struct board_kind {
        uint32_t pci_device_id, pci_subsystem_id;
        uint32_t is_sriov;
        board_switch ecc;
        char text[BOARD_TEXT_MAX]; /* of what board_device_detail.metadata_text begins with */
};

/* board_read_kind() - what the board says of @device; false: there is no such device. */
static inline bool board_read_kind(const struct board *board, uint32_t device,
                                   struct board_kind *ret_kind)
{
        struct board_device_detail detail;
        struct board_device record;

        if (!board_read_device(board, device, &record) ||
            !board_read_device_detail(board, device, &detail))
                return false;
        *ret_kind = (struct board_kind){
                .pci_device_id = record.pci_device_id,
                .pci_subsystem_id = record.pci_subsystem_id,
                .is_sriov = record.is_sriov,
                .ecc = record.ecc,
        };
        memcpy(ret_kind->text, detail.metadata_text, sizeof(ret_kind->text) - 1);
        return true;
}

static inline bool board_is_same_kind(const struct board_kind *a, const struct board_kind *b)
{
        return a->pci_device_id == b->pci_device_id && a->pci_subsystem_id == b->pci_subsystem_id &&
               a->is_sriov == b->is_sriov && a->ecc == b->ecc &&
               strncmp(a->text, b->text, sizeof(a->text)) == 0;
}

#endif
