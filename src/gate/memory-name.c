/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that has a name, because it was exported. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "gate/memory-internal.h"
#include "gate/memory.h"
#include "gate/offer-name.h"
#include "wire/gate.h"

bool memory_name_at(CUdeviceptr pointer, struct gate_ticket *ticket)
{
        struct memory_info info;
        struct mapping *mapping;
        int r = -ENOENT;

        pthread_mutex_lock(&memory_lock);
        mapping = memory_find_locked(pointer, &info);
        if (mapping)
                r = offer_name(mapping, ticket->name);
        if (r == 0) {
                ticket->offset = info.start - mapping->address;
                ticket->size = info.size;
        }
        pthread_mutex_unlock(&memory_lock);
        return r == 0;
}

struct mapping *memory_find_named(const uint8_t name[GATE_NAME_SIZE])
{
        struct mapping *mapping;
        size_t at = 0;

        pthread_mutex_lock(&memory_lock);
        while ((mapping = mapping_table_get(at)) && !offer_has_name(mapping, name))
                at++;
        pthread_mutex_unlock(&memory_lock);
        return mapping;
}
