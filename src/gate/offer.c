/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/offer.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "gate/child.h"
#include "gate/mapping.h"
#include "gate/memory.h"
#include "gate/ticket.h"

static struct {
        pthread_mutex_t naming;
        pthread_mutex_t offering; /* while held, what has a name keeps its memory */
} offer = { .naming = PTHREAD_MUTEX_INITIALIZER, .offering = PTHREAD_MUTEX_INITIALIZER };

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

/* An imported handle cannot be exported again; only while nobody uses it can the memory be exchanged. */
int offer_make(int *ret_fd, const uint8_t name[GATE_NAME_SIZE], bool is_closed)
{
        CUresult result = CUDA_SUCCESS;
        struct mapping *mapping;
        const char *call;
        int r = 0;

        pthread_mutex_lock(&offer.offering);
        mapping = memory_find_named(name);
        if (!mapping)
                r = -ENOENT;
        else if (!mapping->has_memory)
                r = -EAGAIN;
        else if (is_closed)
                result = mapping_make_own(mapping, &call);
        else if (!mapping_is_exportable(mapping))
                r = -EBUSY;
        if (r == 0 && result == CUDA_SUCCESS)
                result = mapping_export(mapping, ret_fd, &call);
        pthread_mutex_unlock(&offer.offering);
        return result == CUDA_SUCCESS ? r : -EIO;
}

void offer_forget(void)
{
        pthread_mutex_init(&offer.naming, NULL);
        pthread_mutex_init(&offer.offering, NULL);
}
