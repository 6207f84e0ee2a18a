/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/guests/guest-watch.h"

#include <errno.h>

#include "manager/guests/gate-link.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"

void guest_watch_flush(struct guest *guest)
{
        struct gate_watch_message message = {
                .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_WATCH },
                .watch = guest->watch.wants_demand && guest->watch.turns == GATE_WATCH_NOTHING
                                 ? GATE_WATCH_REPORT
                                 : guest->watch.turns,
                .wants_waiting = guest->watch.wants_demand,
        };

        if (!guest->gate ||
            (guest->watch.told == message.watch &&
             guest->watch.is_demand_told == guest->watch.wants_demand) ||
            gate_link_send(guest->gate, &message, sizeof(message), NULL, 0) < 0)
                return;
        guest->watch.told = message.watch;
        guest->watch.is_demand_told = guest->watch.wants_demand;
        guest->watch.n_may_wait += guest->watch.wants_demand;
}

void guest_watch(struct guest *guest, enum gate_watch watch)
{
        guest->watch.turns = watch;
        guest_watch_flush(guest);
}

void guest_watch_demand(struct guest *guest, bool wants_demand)
{
        guest->watch.wants_demand = wants_demand;
        guest_watch_flush(guest);
}

/* Who lost us has gone back to that. */
void guest_watch_forget(struct guest *guest)
{
        guest->watch.told = guest->watch.turns = GATE_WATCH_NOTHING;
        guest->watch.is_demand_told = false;
        guest->watch.n_may_wait = 0;
}

void guest_watch_renew(struct guest *guest)
{
        guest->watch.n_may_wait += guest->watch.is_demand_told;
}

/* Once for each WATCH that asked for it and each time that it has opened, and only in between: else it could keep us busy. */
int guest_watch_receive(struct guest *guest, size_t size, size_t n_fds)
{
        if (size != sizeof(struct gate_waiting) || n_fds > 0 || guest->watch.n_may_wait == 0 ||
            guest->state == GATE_STATE_OPEN)
                return -EPROTO;
        guest->watch.n_may_wait--;
        observer_tell_guest(&guest->instance->manager->observers, guest, GUEST_WANTS);
        return 0;
}
