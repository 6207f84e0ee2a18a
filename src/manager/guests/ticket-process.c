/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/guests/ticket-process.h"

#include "base/uuid-bytes.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"

uint32_t ticket_process_get_slot(const struct guest *guest)
{
        return guest->share.ticket_slot ? guest->share.ticket_slot - 1 : guest->slot;
}

bool ticket_process_get(const struct guest *guest, struct gate_process *ret_process)
{
        *ret_process = (struct gate_process){
                .start_time = guest->start_time,
                .slot = ticket_process_get_slot(guest),
                .mark = GATE_TICKET_MARK,
        };
        return uuid_to_bytes(guest->instance->uuid, ret_process->vgpu);
}
