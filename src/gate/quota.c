/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between processes a charge is made atomic by a POSIX record lock on the first
 * byte of the page's file. Not by an OFD lock: that belongs to the open file, and
 * all gates of a vGPU may have been handed the same one. A POSIX lock belongs to
 * the process, and goes when it dies.
 */
#include "gate/quota.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "gate/caller.h"
#include "gate/child.h"
#include "wire/gate.h"

static struct instance_page_slot no_slot; /* counts when there is no manager */

static struct {
        pthread_mutex_t lock;
        int fd;
        struct instance_page *page; /* never unmapped: a new page takes the place of the old one */
        struct instance_page_slot *_Atomic slot;
        uint32_t slot_number;
        uint64_t used[INSTANCE_PAGE_KINDS];
        uint64_t n_allocations;
        uint64_t pending, beside, wanted;  /* see instance-page.h */
        uint64_t n_held[GATE_HOLDS_KINDS]; /* by bit */
} quota = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1, .slot = &no_slot };

static void page_lock(short type)
{
        struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1 };
        int saved_errno = errno;

        /* EDEADLK: the kernel suspects a cycle with some other lock of the guest; there is none. */
        while (quota.fd >= 0 && fcntl(quota.fd, F_SETLKW, &lock) < 0)
                if (errno != EINTR && errno != EDEADLK)
                        break; /* a guest that closed our descriptor is counted less exactly */
        errno = saved_errno;
}

static uint64_t add(uint64_t a, uint64_t b)
{
        return a + b < a ? UINT64_MAX : a + b;
}

static uint64_t mine(void)
{
        uint64_t sum = 0;

        for (int kind = 0; kind < INSTANCE_PAGE_KINDS; kind++)
                sum = add(sum, quota.used[kind]);
        return sum;
}

static uint64_t used_by_all(void)
{
        uint64_t sum = mine();

        if (!quota.page)
                return sum;
        for (uint32_t i = 0; i < INSTANCE_PAGE_SLOTS; i++) {
                struct instance_page_slot *slot = &quota.page->slot[i];

                if (slot == atomic_load(&quota.slot))
                        continue;
                for (int kind = 0; kind < INSTANCE_PAGE_KINDS; kind++)
                        sum = add(sum,
                                  atomic_load_explicit(&slot->used[kind], memory_order_relaxed));
        }
        return sum;
}

/* In order: who lowers the quota sees what was told as pending before, or we see the lower one. */
static uint64_t limit(void)
{
        return quota.page ? atomic_load(&quota.page->quota) : UINT64_MAX;
}

static uint64_t left(void)
{
        uint64_t used = used_by_all(), all = limit();

        return used < all ? all - used : 0;
}

static uint32_t holds(void)
{
        uint32_t bits = 0;

        for (int i = 0; i < GATE_HOLDS_KINDS; i++)
                bits |= quota.n_held[i] > 0 ? 1u << i : 0;
        return bits;
}

static void publish(void)
{
        struct instance_page_slot *slot = atomic_load(&quota.slot);
        uint64_t sum = mine();

        for (int kind = 0; kind < INSTANCE_PAGE_KINDS; kind++)
                atomic_store_explicit(&slot->used[kind], quota.used[kind], memory_order_relaxed);
        atomic_store(&slot->beside, quota.beside);
        atomic_store_explicit(&slot->n_allocations, quota.n_allocations, memory_order_relaxed);
        atomic_store_explicit(&slot->holds, holds(), memory_order_relaxed);
        if (sum > atomic_load_explicit(&slot->peak, memory_order_relaxed))
                atomic_store_explicit(&slot->peak, sum, memory_order_relaxed);
}

static uint64_t beside_of_all(void)
{
        uint64_t sum = 0;

        for (uint32_t i = 0; i < INSTANCE_PAGE_SLOTS; i++)
                sum = add(sum, atomic_load(&quota.page->slot[i].beside));
        return sum;
}

/* With the locks, and after what we want has been told as pending. */
static bool is_under_ceiling(uint64_t bytes)
{
        uint64_t ceiling = quota.page ? atomic_load(&quota.page->ceiling) : 0;

        if (ceiling == 0 ||
            clock_now(CLOCK_MONOTONIC) >= atomic_load(&quota.page->ceiling_until_ns))
                return true;
        return add(add(used_by_all(), beside_of_all()), bytes) <= ceiling;
}

static void tell_pending(void)
{
        atomic_store(&atomic_load(&quota.slot)->pending, quota.pending);
}

static int check(uint64_t bytes, bool is_limited)
{
        if (is_limited && bytes > left())
                return -EDQUOT;
        return is_under_ceiling(bytes) ? 0 : -EAGAIN;
}

/* @count is one of ours. Errors: -EDQUOT, -EAGAIN (under the ceiling there is no room just now). */
static int take(uint64_t *count, uint64_t bytes, bool is_limited)
{
        int r;

        pthread_mutex_lock(&quota.lock);
        page_lock(F_WRLCK);
        quota.pending += bytes;
        tell_pending();
        r = check(bytes, is_limited);
        if (r == 0) {
                *count += bytes;
                publish();
        } else {
                quota.pending -= bytes;
                tell_pending();
        }
        page_lock(F_UNLCK);
        pthread_mutex_unlock(&quota.lock);
        return r;
}

/* As long as a manager takes to look again, and to divide what there is among those who wait. */
#define CEILING_WAIT_NS 3000000000u
#define CEILING_NAP_NS  1000000

static void tell_wanted(void)
{
        atomic_store(&atomic_load(&quota.slot)->wanted, quota.wanted);
}

static void want(uint64_t bytes)
{
        pthread_mutex_lock(&quota.lock);
        quota.wanted = add(quota.wanted, bytes);
        tell_wanted();
        pthread_mutex_unlock(&quota.lock);
}

static void want_no_more(uint64_t bytes)
{
        pthread_mutex_lock(&quota.lock);
        quota.wanted -= bytes < quota.wanted ? bytes : quota.wanted;
        tell_wanted();
        pthread_mutex_unlock(&quota.lock);
}

/* On an overcommitted device: for however long it takes until others have left. */
static bool may_wait_long(void)
{
        return quota.page && atomic_load(&quota.page->waits);
}

/* Others may go on meanwhile, and so may the manager with us. */
static void nap_aside(void)
{
        const struct timespec nap = { .tv_nsec = CEILING_NAP_NS };

        caller_step_aside();
        nanosleep(&nap, NULL);
        caller_step_back();
}

static int take_patiently(uint64_t *count, uint64_t bytes, bool is_limited)
{
        int r = take(count, bytes, is_limited);
        uint64_t deadline_ns;

        if (r == -EAGAIN) {
                deadline_ns = clock_now(CLOCK_MONOTONIC) + CEILING_WAIT_NS;
                want(bytes);
                do {
                        nap_aside();
                        r = take(count, bytes, is_limited);
                } while (r == -EAGAIN &&
                         (may_wait_long() || clock_now(CLOCK_MONOTONIC) < deadline_ns));
                want_no_more(bytes);
        }
        if (r < 0)
                atomic_fetch_add(&atomic_load(&quota.slot)->n_refused, 1);
        return r < 0 ? -EDQUOT : 0;
}

/* Asking for room. */

static void ask(struct quota_want *want, const struct instance_page_slot **ret_slot)
{
        struct instance_page_slot *slot = atomic_load(&quota.slot);

        want->ask = atomic_fetch_add(&slot->n_asks, 1) + 1;
        *ret_slot = slot;
}

/* Perhaps of a later ask, of another thread: then somebody looked after ours, too. */
static bool is_answered(const struct quota_want *want, const struct instance_page_slot *slot,
                        bool *ret_denied)
{
        uint64_t answer = atomic_load(&slot->answer);

        *ret_denied = answer & INSTANCE_PAGE_DENIED;
        return (int32_t)((uint32_t)answer - want->ask) >= 0;
}

static bool is_over_quota(const struct quota_want *want)
{
        bool is_over;

        pthread_mutex_lock(&quota.lock);
        is_over = want->is_limited && want->bytes > left();
        pthread_mutex_unlock(&quota.lock);
        return is_over;
}

bool quota_wait_for_room(struct quota_want *wanted)
{
        const struct instance_page_slot *slot;
        bool is_denied = false;

        if (!may_wait_long() || is_over_quota(wanted))
                return false;
        if (!wanted->is_told)
                want(wanted->bytes);
        wanted->is_told = true;
        ask(wanted, &slot);
        while (may_wait_long() && !is_answered(wanted, slot, &is_denied)) {
                nap_aside();
                if (slot != atomic_load(&quota.slot)) /* we have joined again */
                        ask(wanted, &slot);
        }
        return !is_denied;
}

void quota_end_wait(struct quota_want *wanted)
{
        if (wanted->is_told)
                want_no_more(wanted->bytes);
        wanted->is_told = false;
}

int quota_charge(enum instance_page_kind kind, uint64_t bytes)
{
        return take_patiently(&quota.used[kind], bytes, true);
}

int quota_take_beside(uint64_t bytes)
{
        return take_patiently(&quota.beside, bytes, false);
}

void quota_settle(uint64_t bytes)
{
        pthread_mutex_lock(&quota.lock);
        quota.pending -= bytes < quota.pending ? bytes : quota.pending;
        tell_pending();
        pthread_mutex_unlock(&quota.lock);
}

void quota_refund(enum instance_page_kind kind, uint64_t bytes)
{
        pthread_mutex_lock(&quota.lock);
        quota.used[kind] -= bytes < quota.used[kind] ? bytes : quota.used[kind];
        publish();
        pthread_mutex_unlock(&quota.lock);
}

void quota_move(enum instance_page_kind from, enum instance_page_kind to, uint64_t bytes)
{
        pthread_mutex_lock(&quota.lock);
        quota.used[from] -= bytes;
        quota.used[to] += bytes;
        publish();
        pthread_mutex_unlock(&quota.lock);
}

void quota_count_allocations(int64_t n)
{
        pthread_mutex_lock(&quota.lock);
        quota.n_allocations += (uint64_t)n;
        publish();
        pthread_mutex_unlock(&quota.lock);
}

void quota_count_holds(uint32_t bits, int n)
{
        if (bits == 0)
                return;
        pthread_mutex_lock(&quota.lock);
        for (int i = 0; i < GATE_HOLDS_KINDS; i++)
                if (bits & 1u << i)
                        quota.n_held[i] += (uint64_t)(int64_t)n;
        publish();
        pthread_mutex_unlock(&quota.lock);
}

uint32_t quota_get_holds(void)
{
        uint32_t bits;

        pthread_mutex_lock(&quota.lock);
        bits = holds();
        pthread_mutex_unlock(&quota.lock);
        return bits;
}

void quota_count_launches(uint64_t n)
{
        atomic_fetch_add_explicit(&atomic_load(&quota.slot)->n_launches, n, memory_order_relaxed);
}

struct instance_page *quota_get_page(uint32_t *ret_slot)
{
        struct instance_page *page;

        pthread_mutex_lock(&quota.lock);
        page = quota.page;
        *ret_slot = quota.slot_number;
        pthread_mutex_unlock(&quota.lock);
        return page;
}

void quota_get(struct quota_view *ret_view)
{
        pthread_mutex_lock(&quota.lock);
        ret_view->is_limited = quota.page != NULL;
        ret_view->limit = limit();
        ret_view->left = left();
        memcpy(ret_view->used, quota.used, sizeof(quota.used));
        pthread_mutex_unlock(&quota.lock);
}

static int page_check(const struct instance_page *page, uint32_t slot)
{
        if (page->magic != INSTANCE_PAGE_MAGIC || page->version != INSTANCE_PAGE_VERSION ||
            page->n_slots != INSTANCE_PAGE_SLOTS || slot >= INSTANCE_PAGE_SLOTS)
                return -EPROTO;
        return 0;
}

static int page_map(struct instance_page **ret_page, int fd, uint32_t slot)
{
        struct instance_page *page;
        struct stat status;
        int r;

        if (fstat(fd, &status) < 0)
                return -errno;
        if ((uint64_t)status.st_size < sizeof(*page))
                return -EPROTO;
        page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (page == MAP_FAILED)
                return -errno;
        r = page_check(page, slot);
        if (r < 0) {
                munmap(page, sizeof(*page));
                return r;
        }
        *ret_page = page;
        return 0;
}

/* Threads may be adding launches to the old page at this moment, so its address stays valid. */
static struct instance_page *replace(struct instance_page *old, struct instance_page *new)
{
        void *moved =
                old ? mremap(new, sizeof(*new), sizeof(*new), MREMAP_MAYMOVE | MREMAP_FIXED, old)
                    : new;

        return moved == MAP_FAILED ? new : moved;
}

int quota_attach(int fd, uint32_t slot)
{
        CLEANUP(fd_closep) int owned_fd = fd;
        struct instance_page_slot *new_slot;
        struct instance_page *page = NULL;
        uint64_t launches;
        int r;

        r = page_map(&page, fd, slot);
        if (r < 0)
                return r;

        pthread_mutex_lock(&quota.lock);
        launches = atomic_load(&atomic_load(&quota.slot)->n_launches);
        quota.page = replace(quota.page, page);
        new_slot = &quota.page->slot[slot];
        if (atomic_load(&new_slot->n_launches) < launches)
                atomic_store(&new_slot->n_launches, launches);
        quota.slot_number = slot;
        atomic_store(&quota.slot, new_slot);
        fd_close(quota.fd);
        quota.fd = TAKE_FD(owned_fd);
        publish();
        tell_pending();
        tell_wanted();
        pthread_mutex_unlock(&quota.lock);
        return 0;
}

void quota_leave(void)
{
        struct instance_page *own = mmap(NULL, sizeof(*own), PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        pthread_mutex_lock(&quota.lock);
        if (own != MAP_FAILED && quota.page) {
                memcpy(own, quota.page, sizeof(*own));
                own->quota = UINT64_MAX;
                own->turn = INSTANCE_PAGE_FREE;
                own->ceiling = 0;
                own->waits = 0;
                quota.page = replace(quota.page, own);
                atomic_store(&quota.slot, &quota.page->slot[quota.slot_number]);
                quota.fd = fd_close(quota.fd);
        }
        pthread_mutex_unlock(&quota.lock);
}

void quota_forget(void)
{
        pthread_mutex_init(&quota.lock, NULL);
        if (quota.page)
                munmap(quota.page, sizeof(*quota.page));
        quota.page = NULL;
        quota.fd = fd_close(quota.fd);
        atomic_store(&quota.slot, &no_slot);
        memset(quota.used, 0, sizeof(quota.used));
        memset(quota.n_held, 0, sizeof(quota.n_held));
        quota.n_allocations = quota.pending = quota.beside = quota.wanted = 0;
}
