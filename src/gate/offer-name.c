/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/offer-name.h"

#include <stdatomic.h>
#include <string.h>

#include "gate/mapping.h"
#include "gate/offer-internal.h"
#include "gate/ticket.h"

struct offer offer = { .naming = PTHREAD_MUTEX_INITIALIZER, .offering = PTHREAD_MUTEX_INITIALIZER };

static int name_locked(struct mapping *mapping, uint8_t ret_name[GATE_NAME_SIZE])
{
        if (!atomic_load_explicit(&mapping->is_named, memory_order_relaxed)) {
                int r = ticket_make_name(mapping->name);

                if (r < 0)
                        return r;
                atomic_store_explicit(&mapping->is_named, true, memory_order_release);
        }
        memcpy(ret_name, mapping->name, GATE_NAME_SIZE);
        return 0;
}

int offer_name(struct mapping *mapping, uint8_t ret_name[GATE_NAME_SIZE])
{
        int r;

        pthread_mutex_lock(&offer.naming);
        r = name_locked(mapping, ret_name);
        pthread_mutex_unlock(&offer.naming);
        return r;
}

bool offer_has_name(const struct mapping *mapping, const uint8_t name[GATE_NAME_SIZE])
{
        return atomic_load_explicit(&mapping->is_named, memory_order_acquire) &&
               memcmp(mapping->name, name, GATE_NAME_SIZE) == 0;
}

void offer_withdraw(struct mapping *mapping)
{
        if (!atomic_load_explicit(&mapping->is_named, memory_order_acquire))
                return;
        pthread_mutex_lock(&offer.offering);
        atomic_store_explicit(&mapping->is_named, false, memory_order_release);
        pthread_mutex_unlock(&offer.offering);
}
