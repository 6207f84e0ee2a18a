/* SPDX-License-Identifier: Apache-2.0 */
/* How processes charge one quota without a lock: state/instance-page.h. The mutex is between threads of this process. */
#include "gate/quota.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "gate/caller.h"
#include "gate/child.h"
#include "gate/quota-page.h"
#include "wire/gate.h"

/* What the vGPU has of one device. */
struct part {
        struct instance_page *page; /* never unmapped: a new page takes the place of the old one */
        struct instance_page_slot *_Atomic slot;
        struct instance_page_slot none; /* counts when there is no manager */
        uint64_t used[INSTANCE_PAGE_KINDS];
        uint64_t pending, beside, wanted; /* see instance-page.h */
};

static struct {
        pthread_mutex_t lock;
        struct part part[QUOTA_PARTS_MAX];
        _Atomic uint32_t n_parts;          /* 0: there is no manager, and no limit */
        uint8_t order[QUOTA_PARTS_MAX];    /* by the driver's number of the device */
        _Atomic uint32_t slot_number;      /* in the pages of all parts */
        uint64_t n_allocations;            /* of the process; the first page has them, */
        uint64_t n_held[GATE_HOLDS_KINDS]; /* and these, by bit */
} quota = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct part *const first = &quota.part[0];

/* Without a manager all is counted in one place. */
static struct part *part_of(int device)
{
        if (device < 0 || (uint32_t)device >= quota.n_parts)
                return first;
        return &quota.part[quota.order[device]];
}

static struct instance_page_slot *slot_of(struct part *part)
{
        struct instance_page_slot *slot = atomic_load(&part->slot);

        return slot ? slot : &part->none;
}

static uint64_t add(uint64_t a, uint64_t b)
{
        return a + b < a ? UINT64_MAX : a + b;
}

static uint64_t mine(const struct part *part)
{
        uint64_t sum = 0;

        for (int kind = 0; kind < INSTANCE_PAGE_KINDS; kind++)
                sum = add(sum, part->used[kind]);
        return sum;
}

/* What processes have together: surely, and if all that they claim comes about. */
struct sums {
        uint64_t used, claimed;
};

/*
 * The claim before what is used: a claim that has just gone is used by now, or withdrawn. The kinds one after another may
 * be less than there ever was, of what has become another kind meanwhile; they count for gates of former versions.
 */
static void add_slot(struct sums *sums, struct instance_page_slot *slot)
{
        uint64_t claim = atomic_load(&slot->claim), sum = atomic_load(&slot->sum), used = 0;

        for (int kind = 0; kind < INSTANCE_PAGE_KINDS; kind++)
                used = add(used, atomic_load(&slot->used[kind]));
        used = sum > used ? sum : used;
        sums->used = add(sums->used, used);
        sums->claimed = add(sums->claimed, claim > used ? claim : used);
}

static struct sums sum_all(struct part *part)
{
        struct sums sums = { mine(part), mine(part) };

        for (uint32_t i = 0; part->page && i < INSTANCE_PAGE_SLOTS; i++)
                if (&part->page->slot[i] != slot_of(part))
                        add_slot(&sums, &part->page->slot[i]);
        return sums;
}

/* In order: who lowers the quota sees what was told as pending before, or we see the lower one. */
static uint64_t limit(const struct part *part)
{
        return part->page ? atomic_load(&part->page->quota) : UINT64_MAX;
}

static uint64_t left(struct part *part)
{
        uint64_t used = sum_all(part).used, all = limit(part);

        return used < all ? all - used : 0;
}

static uint32_t holds(void)
{
        uint32_t bits = 0;

        for (int i = 0; i < GATE_HOLDS_KINDS; i++)
                bits |= quota.n_held[i] > 0 ? 1u << i : 0;
        return bits;
}

static void publish_counts(void)
{
        struct instance_page_slot *slot = slot_of(first);

        atomic_store_explicit(&slot->n_allocations, quota.n_allocations, memory_order_relaxed);
        atomic_store_explicit(&slot->holds, holds(), memory_order_relaxed);
}

static void publish(struct part *part)
{
        struct instance_page_slot *slot = slot_of(part);
        uint64_t sum = mine(part);

        for (int kind = 0; kind < INSTANCE_PAGE_KINDS; kind++)
                atomic_store(&slot->used[kind], part->used[kind]);
        atomic_store(&slot->sum, sum);
        atomic_store(&slot->beside, part->beside);
        if (sum > atomic_load_explicit(&slot->peak, memory_order_relaxed))
                atomic_store_explicit(&slot->peak, sum, memory_order_relaxed);
}

static uint64_t beside_of_all(const struct part *part)
{
        uint64_t sum = 0;

        for (uint32_t i = 0; i < INSTANCE_PAGE_SLOTS; i++)
                sum = add(sum, atomic_load(&part->page->slot[i].beside));
        return sum;
}

/* With the lock, and after what we want has been told as pending. */
static bool is_under_ceiling(struct part *part, uint64_t bytes)
{
        uint64_t ceiling = part->page ? atomic_load(&part->page->ceiling) : 0;

        if (ceiling == 0 ||
            clock_now(CLOCK_MONOTONIC) >= atomic_load(&part->page->ceiling_until_ns))
                return true;
        return add(add(sum_all(part).claimed, beside_of_all(part)), bytes) <= ceiling;
}

static void tell_pending(struct part *part)
{
        atomic_store(&slot_of(part)->pending, part->pending);
}

/*
 * One look is no picture of one moment: what one process gave back and another one took meanwhile counts twice. So the quota
 * is exceeded only if several looks say so.
 */
#define QUOTA_LOOKS 3

/* Errors: -EDQUOT, -EBUSY (it depends on what others claim at this moment). */
static int check_quota(struct part *part, uint64_t bytes)
{
        for (int i = 0; i < QUOTA_LOOKS; i++) {
                struct sums sums = sum_all(part);
                uint64_t all = limit(part);

                if (add(sums.claimed, bytes) <= all)
                        return 0;
                if (add(sums.used, bytes) <= all)
                        return -EBUSY;
        }
        return -EDQUOT;
}

/* What is not limited by the quota has been added to what is beside it. */
static int check(struct part *part, uint64_t bytes, bool is_limited)
{
        int r = is_limited ? check_quota(part, bytes) : 0;

        if (r < 0)
                return r;
        return is_under_ceiling(part, is_limited ? bytes : 0) ? 0 : -EAGAIN;
}

/* For others to see before we look at theirs. Of what is beside the quota no more than the ceiling depends on it. */
static void announce(struct part *part, uint64_t bytes, bool is_limited)
{
        struct instance_page_slot *slot = slot_of(part);

        part->pending += bytes;
        tell_pending(part);
        if (is_limited)
                atomic_store(&slot->claim, add(mine(part), bytes));
        else
                atomic_store(&slot->beside, add(part->beside, bytes));
}

/* @count is one of @part's. Errors: -EDQUOT, -EBUSY, -EAGAIN (under the ceiling there is no room just now). */
static int try_to_take(struct part *part, uint64_t *count, uint64_t bytes, bool is_limited)
{
        int r;

        pthread_mutex_lock(&quota.lock);
        announce(part, bytes, is_limited);
        r = check(part, bytes, is_limited);
        if (r == 0)
                *count += bytes;
        else
                part->pending -= bytes;
        publish(part);
        atomic_store(&slot_of(part)->claim, 0);
        if (r < 0)
                tell_pending(part);
        pthread_mutex_unlock(&quota.lock);
        return r;
}

/* A claim that has not gone by then is of a process that is stopped, which will have what it claims. */
#define CLAIM_WAIT_NS 100000000u
#define CLAIM_NAP_NS  50000

static int take(struct part *part, uint64_t *count, uint64_t bytes, bool is_limited)
{
        const struct timespec nap = { .tv_nsec = CLAIM_NAP_NS };
        int r = try_to_take(part, count, bytes, is_limited);
        uint64_t deadline_ns = r == -EBUSY ? clock_now(CLOCK_MONOTONIC) + CLAIM_WAIT_NS : 0;

        while (r == -EBUSY && clock_now(CLOCK_MONOTONIC) < deadline_ns) {
                nanosleep(&nap, NULL);
                r = try_to_take(part, count, bytes, is_limited);
        }
        return r == -EBUSY ? -EDQUOT : r;
}

/*
 * Waiting for room. There is one way to wait, whatever for: what is wanted is told, and on an overcommitted device
 * the manager is asked. So it sees each thread that waits, and others leave for it. See enum quota_wait.
 */

/* As long as a manager takes to look again, and to divide what there is among those who wait. */
#define CEILING_WAIT_NS 3000000000u
#define CEILING_LOOK_NS 1000000000u
#define CEILING_NAP_NS  1000000

uint64_t quota_in_vain_ns = 10000000000;

static void tell_wanted(struct part *part)
{
        atomic_store(&slot_of(part)->wanted, part->wanted);
}

/* The wait of this thread: what it charges for that, and may find itself below the ceiling with, is no other wait. */
static __attribute__((tls_model("initial-exec"))) __thread struct quota_want *own_wait;

static void set_wait(struct quota_want *wanted, enum quota_wait wait)
{
        wanted->wait = wait;
        wanted->since_ns = clock_now(CLOCK_MONOTONIC);
}

static void leave_wait(struct leave *leave)
{
        quota_end_wait((struct quota_want *)((char *)leave - offsetof(struct quota_want, leave)));
}

void quota_begin_wait(struct quota_want *wanted)
{
        if (own_wait == wanted)
                return;
        wanted->outer = own_wait;
        own_wait = wanted;
        leave_begin(&wanted->leave, leave_wait);
}

static void tell(struct quota_want *wanted)
{
        struct part *part = part_of(wanted->device);

        quota_begin_wait(wanted);
        if (wanted->wait != QUOTA_WAIT_NONE)
                return;
        pthread_mutex_lock(&quota.lock);
        part->wanted = add(part->wanted, wanted->bytes);
        tell_wanted(part);
        pthread_mutex_unlock(&quota.lock);
        set_wait(wanted, QUOTA_WAIT_TOLD);
}

void quota_end_wait(struct quota_want *wanted)
{
        struct part *part = part_of(wanted->device);

        if (own_wait == wanted)
                own_wait = wanted->outer;
        leave_end(&wanted->leave);
        if (wanted->wait == QUOTA_WAIT_NONE)
                return;
        pthread_mutex_lock(&quota.lock);
        part->wanted -= wanted->bytes < part->wanted ? wanted->bytes : part->wanted;
        tell_wanted(part);
        pthread_mutex_unlock(&quota.lock);
        wanted->wait = QUOTA_WAIT_NONE;
}

/* On an overcommitted device: for however long it takes until others have left. */
static bool may_wait_long(const struct part *part)
{
        return part->page && atomic_load(&part->page->waits);
}

/* Others may go on meanwhile, and so may the manager with us. */
static void nap_aside(void)
{
        caller_nap_aside(CEILING_NAP_NS);
}

static void ask(struct quota_want *wanted)
{
        wanted->slot = slot_of(part_of(wanted->device));
        wanted->ask = atomic_fetch_add(&wanted->slot->n_asks, 1) + 1;
        set_wait(wanted, QUOTA_WAIT_ASKED);
}

/* The answer may be of a later ask, of another thread: then the manager looked after ours, too. */
static void look_for_answer(struct quota_want *wanted)
{
        uint64_t answer;

        if (wanted->slot != slot_of(part_of(wanted->device))) { /* we have joined again */
                ask(wanted);
                return;
        }
        answer = atomic_load(&wanted->slot->answer);
        if ((int32_t)((uint32_t)answer - wanted->ask) >= 0)
                set_wait(wanted,
                         answer & INSTANCE_PAGE_DENIED ? QUOTA_WAIT_DENIED : QUOTA_WAIT_ANSWERED);
}

static bool has_waited(const struct quota_want *wanted, uint64_t time)
{
        return clock_now(CLOCK_MONOTONIC) - wanted->since_ns >= time;
}

/* True: nobody denied it. */
static bool wait_for_answer(struct quota_want *wanted)
{
        struct part *part = part_of(wanted->device);

        ask(wanted);
        while (may_wait_long(part) && wanted->wait == QUOTA_WAIT_ASKED) {
                if (wanted->goes_on && !wanted->goes_on(wanted))
                        return false; /* asked is not what nobody wants any more */
                nap_aside();
                look_for_answer(wanted);
        }
        return wanted->wait != QUOTA_WAIT_DENIED;
}

/*
 * Waits below the ceiling; true: try. The manager closes it for a moment in each look, and up to a second while a
 * process is restored: it asks when that is over, so that nobody leaves in vain. Then only the answer counts: what
 * others are leaving is not there yet. When it is answered the manager divides anew; if that does not let it go on in
 * time, what was promised is gone, and it asks again.
 */
static bool wait_below_ceiling(struct quota_want *wanted)
{
        uint64_t time;

        tell(wanted);
        if (wanted->wait == QUOTA_WAIT_DENIED)
                return false;
        nap_aside();
        if (!may_wait_long(part_of(wanted->device)))
                return !has_waited(wanted, CEILING_WAIT_NS);
        time = wanted->wait == QUOTA_WAIT_TOLD ? CEILING_LOOK_NS : CEILING_WAIT_NS;
        return !has_waited(wanted, time) || wait_for_answer(wanted);
}

static int take_patiently(int device, uint64_t *count, uint64_t bytes, bool is_limited)
{
        struct quota_want wanted = { .device = device, .bytes = bytes, .is_limited = is_limited };
        bool is_again = own_wait && own_wait->device == device && own_wait->bytes >= bytes;
        struct part *part = part_of(device);
        int r;

        do
                r = take(part, count, bytes, is_limited);
        while (r == -EAGAIN && wait_below_ceiling(is_again ? own_wait : &wanted));
        if (!is_again)
                quota_end_wait(&wanted);
        if (r == -EDQUOT) /* below the ceiling of a full device it was not over the quota */
                atomic_fetch_add(&slot_of(part)->n_refused, 1);
        return r < 0 ? -EDQUOT : 0;
}

static bool is_over_quota(const struct quota_want *wanted)
{
        bool is_over;

        pthread_mutex_lock(&quota.lock);
        is_over = wanted->is_limited && wanted->bytes > left(part_of(wanted->device));
        pthread_mutex_unlock(&quota.lock);
        return is_over;
}

/* What is charged is pending again; unless @must, only if it is under the ceiling. */
static bool tell_again(struct part *part, uint64_t bytes, bool must)
{
        bool may;

        pthread_mutex_lock(&quota.lock);
        part->pending += bytes;
        tell_pending(part);
        may = must || is_under_ceiling(part, 0);
        if (!may) {
                part->pending -= bytes;
                tell_pending(part);
        }
        pthread_mutex_unlock(&quota.lock);
        return may;
}

/* False: it waited below the ceiling in vain; all the same it is pending. */
static bool tell_again_patiently(struct quota_want *wanted)
{
        struct part *part = part_of(wanted->device);

        while (!tell_again(part, wanted->bytes, false))
                if (!wait_below_ceiling(wanted)) {
                        (void)tell_again(part, wanted->bytes, true);
                        return false;
                }
        return true;
}

/* Of a guess: it may be that no room helps. Both are counted, for a busy machine makes few tries in that time. */
bool quota_is_in_vain(const struct quota_want *wanted)
{
        return wanted->n_tries > 0 && wanted->n_answers >= wanted->n_tries &&
               clock_now(CLOCK_MONOTONIC) - wanted->answered_ns >= quota_in_vain_ns;
}

static bool wait_for_room(struct quota_want *wanted)
{
        if (!wait_for_answer(wanted))
                return false;
        if (wanted->n_answers++ == 0)
                wanted->answered_ns = clock_now(CLOCK_MONOTONIC);
        return true;
}

bool quota_wait_for_room(struct quota_want *wanted)
{
        struct part *part = part_of(wanted->device);

        if (!may_wait_long(part) || is_over_quota(wanted) || quota_is_in_vain(wanted) ||
            wanted->wait == QUOTA_WAIT_DENIED)
                return false;
        tell(wanted);
        if (!wanted->is_charged)
                return wait_for_room(wanted);
        quota_settle(wanted->device, wanted->bytes);
        if (wait_for_room(wanted))
                return tell_again_patiently(wanted);
        (void)tell_again(part, wanted->bytes, true); /* the caller's quota_settle() counts it */
        return false;
}

int quota_charge(int device, enum instance_page_kind kind, uint64_t bytes)
{
        return take_patiently(device, &part_of(device)->used[kind], bytes, true);
}

int quota_take_beside(int device, uint64_t bytes)
{
        return take_patiently(device, &part_of(device)->beside, bytes, false);
}

void quota_settle(int device, uint64_t bytes)
{
        struct part *part = part_of(device);

        pthread_mutex_lock(&quota.lock);
        part->pending -= bytes < part->pending ? bytes : part->pending;
        tell_pending(part);
        pthread_mutex_unlock(&quota.lock);
}

void quota_refund(int device, enum instance_page_kind kind, uint64_t bytes)
{
        struct part *part = part_of(device);

        pthread_mutex_lock(&quota.lock);
        part->used[kind] -= bytes < part->used[kind] ? bytes : part->used[kind];
        publish(part);
        pthread_mutex_unlock(&quota.lock);
}

void quota_move(int device, enum instance_page_kind from, enum instance_page_kind to,
                uint64_t bytes)
{
        struct part *part = part_of(device);

        pthread_mutex_lock(&quota.lock);
        part->used[from] -= bytes;
        part->used[to] += bytes;
        publish(part);
        pthread_mutex_unlock(&quota.lock);
}

void quota_count_allocations(int64_t n)
{
        pthread_mutex_lock(&quota.lock);
        quota.n_allocations += (uint64_t)n;
        publish_counts();
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
        publish_counts();
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
        atomic_fetch_add_explicit(&slot_of(first)->n_launches, n, memory_order_relaxed);
}

struct instance_page *quota_get_page(uint32_t *ret_slot)
{
        struct instance_page *page;

        pthread_mutex_lock(&quota.lock);
        page = first->page;
        *ret_slot = quota.slot_number;
        pthread_mutex_unlock(&quota.lock);
        return page;
}

bool quota_has_several(void)
{
        bool has_several;

        pthread_mutex_lock(&quota.lock);
        has_several = quota.n_parts > 1;
        pthread_mutex_unlock(&quota.lock);
        return has_several;
}

void quota_get(int device, struct quota_view *ret_view)
{
        struct part *part = part_of(device);

        pthread_mutex_lock(&quota.lock);
        ret_view->is_limited = part->page != NULL;
        ret_view->limit = limit(part);
        ret_view->left = left(part);
        memcpy(ret_view->used, part->used, sizeof(part->used));
        pthread_mutex_unlock(&quota.lock);
}

/* With the lock. */
static void attach(struct part *part, struct instance_page *page, uint32_t slot)
{
        uint64_t launches = atomic_load(&slot_of(part)->n_launches);
        struct instance_page_slot *new_slot;

        part->page = quota_replace_page(part->page, page);
        new_slot = &part->page->slot[slot];
        if (atomic_load(&new_slot->n_launches) < launches)
                atomic_store(&new_slot->n_launches, launches);
        atomic_store(&part->slot, new_slot);
        publish(part);
        tell_pending(part);
        tell_wanted(part);
}

int quota_attach(int *fds, uint32_t n, uint32_t slot)
{
        struct instance_page *pages[QUOTA_PARTS_MAX] = { 0 };
        int r = n == 0 || n > QUOTA_PARTS_MAX || (quota.n_parts > 0 && quota.n_parts != n)
                        ? -EPROTO
                        : quota_map_pages(pages, fds, n, slot);

        if (r < 0)
                return r;
        pthread_mutex_lock(&quota.lock);
        for (uint32_t i = 0; i < n; i++) {
                attach(&quota.part[i], pages[i], slot);
                fds[i] = fd_close(fds[i]);
        }
        quota.slot_number = slot;
        publish_counts();
        for (uint32_t i = 0; quota.n_parts == 0 && i < n; i++)
                quota.order[i] = (uint8_t)i;
        quota.n_parts = n;
        pthread_mutex_unlock(&quota.lock);
        return 0;
}

void quota_set_order(const uint8_t *order, uint32_t n)
{
        memcpy(quota.order, order, n);
}

uint32_t quota_get_part(int device)
{
        return (uint32_t)(part_of(device) - first);
}

static void leave(struct part *part)
{
        struct instance_page *own = mmap(NULL, sizeof(*own), PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (own == MAP_FAILED)
                return;
        memcpy(own, part->page, sizeof(*own));
        own->quota = UINT64_MAX;
        own->turn = INSTANCE_PAGE_FREE;
        own->ceiling = 0;
        own->waits = 0;
        part->page = quota_replace_page(part->page, own);
        atomic_store(&part->slot, &part->page->slot[quota.slot_number]);
}

void quota_leave(void)
{
        pthread_mutex_lock(&quota.lock);
        for (uint32_t i = 0; i < quota.n_parts; i++)
                leave(&quota.part[i]);
        pthread_mutex_unlock(&quota.lock);
}

static void forget(struct part *part)
{
        if (part->page)
                munmap(part->page, sizeof(*part->page));
        part->page = NULL;
        atomic_store(&part->slot, &part->none);
        memset(part->used, 0, sizeof(part->used));
        part->pending = part->beside = part->wanted = 0;
}

void quota_forget(void)
{
        pthread_mutex_init(&quota.lock, NULL);
        for (uint32_t i = 0; i < QUOTA_PARTS_MAX; i++)
                forget(&quota.part[i]);
        memset(quota.n_held, 0, sizeof(quota.n_held));
        quota.n_allocations = 0;
        quota.n_parts = 0;
        own_wait = NULL;
}
