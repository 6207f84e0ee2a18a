/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/offer.h"

#include <errno.h>
#include <pthread.h>

#include "gate/child.h"
#include "gate/mapping.h"
#include "gate/memory.h"
#include "gate/offer-internal.h"

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
