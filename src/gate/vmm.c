/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/vmm.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gate/child.h"
#include "gate/entry.h"
#include "gate/log.h"
#include "gate/mapping.h"
#include "gate/memory.h"
#include "gate/offer-name.h"
#include "gate/quota.h"

/* Numbers that no driver gives out: theirs are small, or addresses. */
#define NUMBER_FIRST 0xf0e0000000000000ull

struct handle {
        struct hash_node by_number; /* first */
        uint32_t n;                 /* so many releases are left */
        struct physical *physical;
};

static struct {
        pthread_mutex_t lock;
        struct hash handles, views;
        struct physical *tracked;
        uint32_t n_imports; /* tracked, lost ones too */
        uint64_t next_number;
} vmm = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct handle *find_locked(CUmemGenericAllocationHandle number)
{
        return (struct handle *)hash_find(&vmm.handles, number);
}

/* Physical memory. */

struct physical *vmm_new(void)
{
        struct physical *physical = calloc(1, sizeof(*physical));

        if (physical)
                physical->n_users = 1;
        return physical;
}

void vmm_add_user(struct physical *physical)
{
        pthread_mutex_lock(&vmm.lock);
        physical->n_users++;
        pthread_mutex_unlock(&vmm.lock);
}

void vmm_track(struct physical *physical)
{
        pthread_mutex_lock(&vmm.lock);
        physical->next = vmm.tracked;
        physical->link = &vmm.tracked;
        if (physical->next)
                physical->next->link = &physical->next;
        vmm.tracked = physical;
        vmm.n_imports += physical->import != NULL;
        pthread_mutex_unlock(&vmm.lock);
}

static void untrack_locked(struct physical *physical)
{
        if (!physical->link)
                return;
        *physical->link = physical->next;
        if (physical->next)
                physical->next->link = physical->link;
        physical->link = NULL;
        vmm.n_imports -= physical->import != NULL;
}

/* Nobody finds it any more. */
static void end(struct physical *physical)
{
        if (physical->mapping)
                memory_end(physical->mapping);
        if (physical->import && !physical->import->is_away)
                (void)DRIVER(cuMemRelease)(physical->import->real);
        quota_count_holds(physical->holds, -1);
        quota_refund(physical->device, INSTANCE_PAGE_FIXED, physical->bytes);
        quota_count_allocations(-1);
        if (physical->import && !physical->import->is_lost &&
            !vmm_uses(&physical->import->ticket.process))
                physical->import->tell_dropped(); /* last: what is told has been counted */
        free(physical->import);
        free(physical);
}

void vmm_drop(struct physical *physical)
{
        bool is_over;

        pthread_mutex_lock(&vmm.lock);
        is_over = --physical->n_users == 0;
        if (is_over)
                untrack_locked(physical);
        pthread_mutex_unlock(&vmm.lock);
        if (is_over)
                end(physical);
}

bool vmm_is_ours(CUmemGenericAllocationHandle number)
{
        return number >> 48 == NUMBER_FIRST >> 48;
}

CUmemGenericAllocationHandle vmm_real(const struct physical *physical,
                                      CUmemGenericAllocationHandle number)
{
        if (physical && physical->mapping)
                return physical->mapping->handle;
        return physical && physical->import ? physical->import->real : number;
}

static void hold_locked(struct physical *physical, uint32_t holds)
{
        quota_count_holds(holds & ~physical->holds, 1);
        physical->holds |= holds;
        if (physical->mapping)
                memory_pin(physical->mapping);
}

void vmm_hold(struct physical *physical, uint32_t holds)
{
        pthread_mutex_lock(&vmm.lock);
        hold_locked(physical, holds);
        pthread_mutex_unlock(&vmm.lock);
}

/* Handles. */

int vmm_add_handle(struct physical *physical, CUmemGenericAllocationHandle *number)
{
        struct handle *spare = calloc(1, sizeof(*spare)), *handle;

        pthread_mutex_lock(&vmm.lock);
        if (*number == 0) {
                if (physical->number == 0)
                        physical->number = NUMBER_FIRST + vmm.next_number++;
                *number = physical->number;
        }
        handle = find_locked(*number);
        if (!handle && spare) {
                handle = spare;
                spare = NULL;
                handle->physical = physical;
                hash_add(&vmm.handles, &handle->by_number, *number);
        }
        if (handle)
                handle->n++;
        pthread_mutex_unlock(&vmm.lock);
        free(spare);
        return handle ? 0 : -ENOMEM;
}

struct physical *vmm_find_handle(CUmemGenericAllocationHandle number)
{
        struct physical *physical = NULL;
        const struct handle *handle;

        pthread_mutex_lock(&vmm.lock);
        handle = find_locked(number);
        if (handle) {
                physical = handle->physical;
                physical->n_users++;
        }
        pthread_mutex_unlock(&vmm.lock);
        return physical;
}

struct physical *vmm_take_handle(CUmemGenericAllocationHandle number)
{
        struct physical *physical = NULL;
        struct handle *handle, *spare = NULL;

        pthread_mutex_lock(&vmm.lock);
        handle = find_locked(number);
        if (handle) {
                physical = handle->physical;
                if (--handle->n == 0) {
                        hash_remove(&vmm.handles, &handle->by_number);
                        spare = handle;
                }
        }
        pthread_mutex_unlock(&vmm.lock);
        free(spare);
        return physical;
}

static struct view *find_view_locked(CUdeviceptr address)
{
        for (size_t i = 0; i < HASH_CHAINS; i++)
                for (struct hash_node *node = vmm.views.chain[i]; node; node = node->next)
                        if (address - node->key < ((struct view *)node)->size)
                                return (struct view *)node;
        return NULL;
}

struct physical *vmm_find_behind(CUdeviceptr address)
{
        struct physical *physical = NULL;
        const struct view *view;

        pthread_mutex_lock(&vmm.lock);
        view = find_view_locked(address);
        if (view) {
                physical = view->physical;
                physical->n_users++;
        }
        pthread_mutex_unlock(&vmm.lock);
        return physical;
}

struct physical *vmm_find_named(const uint8_t name[GATE_NAME_SIZE])
{
        struct physical *physical;

        pthread_mutex_lock(&vmm.lock);
        physical = vmm.tracked;
        while (physical && !(physical->mapping && offer_has_name(physical->mapping, name)))
                physical = physical->next;
        if (physical)
                physical->n_users++;
        pthread_mutex_unlock(&vmm.lock);
        return physical;
}

/* Views. */

void vmm_add_view(struct view *view, CUdeviceptr address, struct physical *physical)
{
        pthread_mutex_lock(&vmm.lock);
        view->physical = physical;
        view->of_the_same = physical->views;
        physical->views = view;
        hash_add(&vmm.views, &view->by_address, address);
        pthread_mutex_unlock(&vmm.lock);
}

/* A call may unmap several mappings that lie side by side. */
struct view *vmm_take_views(CUdeviceptr address, uint64_t size)
{
        struct view *taken = NULL;
        CUdeviceptr at = address;

        pthread_mutex_lock(&vmm.lock);
        while (at < address + size) {
                struct view *view = (struct view *)hash_find(&vmm.views, at);

                if (!view)
                        break;
                hash_remove(&vmm.views, &view->by_address);
                view->next = taken;
                taken = view;
                at += view->size;
        }
        pthread_mutex_unlock(&vmm.lock);
        return taken;
}

static void unlink_view_locked(const struct view *view)
{
        struct view **link = &view->physical->views;

        while (*link != view)
                link = &(*link)->of_the_same;
        *link = view->of_the_same;
}

static void end_view(struct view *view)
{
        pthread_mutex_lock(&vmm.lock);
        unlink_view_locked(view);
        pthread_mutex_unlock(&vmm.lock);
        vmm_drop(view->physical);
        free(view->access);
        free(view);
}

void vmm_settle_views(struct view *views, CUresult result)
{
        while (views) {
                struct view *view = views;

                views = view->next;
                if (result == CUDA_SUCCESS) {
                        end_view(view);
                        continue;
                }
                pthread_mutex_lock(&vmm.lock);
                hash_add(&vmm.views, &view->by_address, view->by_address.key);
                pthread_mutex_unlock(&vmm.lock);
        }
}

static bool is_same_place(const CUmemLocation *a, const CUmemLocation *b)
{
        return a->type == b->type && a->id == b->id;
}

/* The last word for each place counts. */
static void note_access_locked(struct view *view, const CUmemAccessDesc *access)
{
        CUmemAccessDesc *grown;

        for (uint32_t i = 0; i < view->n_access; i++)
                if (is_same_place(&view->access[i].location, &access->location)) {
                        view->access[i] = *access;
                        return;
                }
        grown = realloc(view->access, (view->n_access + 1) * sizeof(*grown));
        if (!grown) {
                log_write("no memory to remember who may use memory at %llx",
                          (unsigned long long)view->by_address.key);
                return;
        }
        view->access = grown;
        view->access[view->n_access++] = *access;
}

void vmm_note_access(CUdeviceptr address, uint64_t size, const CUmemAccessDesc *access, size_t n)
{
        struct view *view;

        pthread_mutex_lock(&vmm.lock);
        for (CUdeviceptr at = address; at < address + size; at += view->size) {
                view = (struct view *)hash_find(&vmm.views, at);
                if (!view)
                        break;
                for (size_t i = 0; i < n; i++)
                        note_access_locked(view, &access[i]);
        }
        pthread_mutex_unlock(&vmm.lock);
}

void vmm_note_sync_memops(CUdeviceptr address, bool on)
{
        struct view *view;

        pthread_mutex_lock(&vmm.lock);
        view = find_view_locked(address);
        if (view)
                view->sync_memops = on;
        pthread_mutex_unlock(&vmm.lock);
}

bool vmm_register(CUdeviceptr address, uint64_t size, uint32_t holds)
{
        bool any = false;

        pthread_mutex_lock(&vmm.lock);
        for (size_t i = 0; i < HASH_CHAINS; i++)
                for (struct hash_node *node = vmm.views.chain[i]; node; node = node->next) {
                        struct view *view = (struct view *)node;

                        if (node->key >= address + size || node->key + view->size <= address)
                                continue;
                        hold_locked(view->physical, holds);
                        any = true;
                }
        pthread_mutex_unlock(&vmm.lock);
        return any;
}

/* Imports. */

struct physical *vmm_next_import(const struct physical *after)
{
        struct physical *physical = after ? after->next : vmm.tracked;

        while (physical && !(physical->import && !physical->import->is_lost))
                physical = physical->next;
        return physical;
}

bool vmm_may_import(void)
{
        bool may_import;

        pthread_mutex_lock(&vmm.lock);
        may_import = vmm.n_imports < GATE_IMPORTS_MAX;
        pthread_mutex_unlock(&vmm.lock);
        return may_import;
}

uint32_t vmm_count_imports(void)
{
        const struct physical *physical = NULL;
        uint32_t n = 0;

        pthread_mutex_lock(&vmm.lock);
        while ((physical = vmm_next_import(physical)))
                n++;
        pthread_mutex_unlock(&vmm.lock);
        return n;
}

bool vmm_uses(const struct gate_process *process)
{
        const struct physical *it = NULL;

        pthread_mutex_lock(&vmm.lock);
        do
                it = vmm_next_import(it);
        while (it && memcmp(&it->import->ticket.process, process, sizeof(*process)) != 0);
        pthread_mutex_unlock(&vmm.lock);
        return it;
}

static bool is_listed(const struct gate_process *used, uint32_t n, const struct gate_process *one)
{
        while (n-- > 0)
                if (memcmp(&used[n], one, sizeof(*one)) == 0)
                        return true;
        return false;
}

uint32_t vmm_list_used(struct gate_process *ret_used, uint32_t max)
{
        const struct physical *it = NULL;
        uint32_t n = 0;

        pthread_mutex_lock(&vmm.lock);
        while (n < max && (it = vmm_next_import(it)))
                if (!is_listed(ret_used, n, &it->import->ticket.process))
                        ret_used[n++] = it->import->ticket.process;
        pthread_mutex_unlock(&vmm.lock);
        return n;
}

void vmm_forget(void)
{
        pthread_mutex_init(&vmm.lock, NULL);
        memset(&vmm.handles, 0, sizeof(vmm.handles));
        memset(&vmm.views, 0, sizeof(vmm.views));
        vmm.tracked = NULL;
        vmm.n_imports = 0;
}
