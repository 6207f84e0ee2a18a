/* SPDX-License-Identifier: Apache-2.0 */
/* One that hangs does not keep the others. */
#include "daemon/log.h"
#include "manager/guests/gate-link.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/recovery.h"
#include "manager/model/sharing.h"
#include "manager/operation/copies.h"
#include "manager/operation/operation.h"

bool operation_leave_behind(struct operation *operation, struct guest *guest)
{
        char quoted[LOG_QUOTED_MAX];

        if (!operation->kind->may_leave_behind || operation->is_undoing || sharing_is_any(guest) ||
            operation->step >= operation_find_step(operation->kind, OPERATION_RECORDS))
                return false;
        guest_set_presence(guest, GUEST_ABSENT);
        if (!operation_next_guest(operation, NULL) || recovery_store_process(guest) < 0) {
                guest_set_presence(guest, GUEST_PRESENT);
                return false;
        }
        log_event_of(guest->payer, LOG_LEVEL_WARNING, "left a process behind that hangs",
                     "vgpu=%s pid=%d name=%s operation=%s", operation->instance->name,
                     (int)guest->pid, log_quote(quoted, guest->name), operation->kind->name);
        operation->measured.bytes -= guest->memory_bytes < operation->measured.bytes
                                             ? guest->memory_bytes
                                             : operation->measured.bytes;
        operation->n_left_behind++;
        copies_end(operation, guest);
        if (guest->gate)
                gate_link_hang_up(guest->gate); /* once it is awake it comes back and tells */
        return true;
}
