/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/stay.h"

#include <stdlib.h>

static uint64_t add(uint64_t a, uint64_t b)
{
        return b < STAY_NEVER - a ? a + b : STAY_NEVER;
}

static uint64_t later(uint64_t a, uint64_t b)
{
        return a > b ? a : b;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

uint64_t stay_get_cost(uint64_t took, uint64_t waited)
{
        return waited < took ? took - waited : 0;
}

uint64_t stay_get_guaranteed(uint64_t cost, uint32_t percent)
{
        uint64_t rest = 100 - percent;

        if (rest > 0 && cost > STAY_NEVER / rest)
                return STAY_NEVER;
        return cost * rest / percent;
}

/* The end of one stay. */

uint64_t stay_get_end(const struct stay *stay)
{
        if (stay->after == 0 || stay->is_held)
                return STAY_NEVER;
        return later(later(add(stay->last_work, stay->after), add(stay->since, stay->guaranteed)),
                     stay->not_before);
}

/*
 * Without work since then it counts as idle for vGPUs that wait. Where vGPUs take turns one would leave with work, too:
 * that it leaves by itself only after hours is no reason to keep others waiting.
 */
static uint64_t get_idle_since(const struct stay *stay)
{
        uint64_t idle = STAY_EARLY_MIN;

        if (!stay->takes_turns)
                idle = later(idle, stay->after / STAY_EARLY_PART);
        if (stay->after > 0)
                idle = sooner(idle, stay->after);
        return add(stay->last_work, idle);
}

static bool is_idle(const struct stay *stay, uint64_t now)
{
        return get_idle_since(stay) <= now;
}

/* Has it had no work for a moment, there or away? Then what it was cut off from is over. */
static bool has_rested(const struct stay *stay, uint64_t now)
{
        if (stay->place == STAY_HERE)
                return is_idle(stay, now);
        return stay->place == STAY_AWAY &&
               (stay->wants > 0 ? stay->wants : now) >= add(stay->since, STAY_EARLY_MIN);
}

/* A vGPU that never stops working is not interactive, whatever its owner says. */
static enum stay_class get_class(const struct stay *stay)
{
        return stay->was_cut ? STAY_BATCH : stay->class;
}

static const struct stay_part *find_part(const struct stay *stay, uint32_t device)
{
        for (size_t i = 0; i <= stay->n_more; i++)
                if (stay->part[i].device == device)
                        return &stay->part[i];
        return NULL;
}

static uint64_t get_bytes(const struct stay *stay, uint32_t device)
{
        const struct stay_part *part = find_part(stay, device);

        return part ? part->bytes : 0;
}

struct stay_contest stay_get_contest(struct stay *const *stays, size_t n, uint32_t device,
                                     uint64_t now)
{
        struct stay_contest contest = { .turn = STAY_TURN_MIN };

        for (size_t i = 0; i < n; i++) {
                const struct stay *stay = stays[i];

                if (!find_part(stay, device) ||
                    (stay->wants == 0 && (stay->place != STAY_HERE || is_idle(stay, now))))
                        continue;
                contest.turn = later(contest.turn, stay->guaranteed);
                if (contest.weight == 0 || stay->weight < contest.weight)
                        contest.weight = stay->weight;
        }
        return contest;
}

static uint64_t get_turn(const struct stay *stay, const struct stay *coming,
                         const struct stay_contest *contest)
{
        uint64_t turn;

        if (get_class(coming) == STAY_INTERACTIVE && get_class(stay) == STAY_BATCH)
                return later(stay->guaranteed, STAY_TURN_MIN);
        if (contest->weight == 0 || __builtin_mul_overflow(contest->turn, stay->weight, &turn))
                return STAY_NEVER;
        return later(stay->guaranteed, turn / contest->weight);
}

/* Without work for STAY_PATIENCE it gains nothing by its stay, however long its last swap took. */
static uint64_t get_guaranteed_end(const struct stay *stay)
{
        return sooner(add(stay->since, stay->guaranteed),
                      add(later(stay->since, stay->last_work), STAY_PATIENCE));
}

uint64_t stay_get_end_for(const struct stay *stay, const struct stay *coming,
                          const struct stay_contest *contest)
{
        bool is_at_once =
                get_class(stay) == STAY_INTERACTIVE && get_class(coming) == STAY_INTERACTIVE;
        uint64_t end = get_idle_since(stay);

        if (stay->is_held || stay->place != STAY_HERE || stay == coming ||
            (stay->after == 0 && !stay->takes_turns))
                return STAY_NEVER;
        if (!is_at_once)
                end = later(end, get_guaranteed_end(stay));
        if (stay->takes_turns)
                end = sooner(end, add(stay->since, get_turn(stay, coming, contest)));
        return later(end, stay->not_before);
}

/* Leaving for one that waits. */

/* The order of leaving: without work before with it, then by class, then by age. */
static bool goes_before(const struct stay *a, const struct stay *b, uint64_t now)
{
        bool a_is_idle = is_idle(a, now), b_is_idle = is_idle(b, now);

        if (a_is_idle != b_is_idle)
                return a_is_idle;
        if (a_is_idle)
                return a->last_work < b->last_work;
        if (get_class(a) != get_class(b))
                return get_class(a) == STAY_BATCH;
        return a->since < b->since;
}

/* One device's, while it is looked at: what those have there that may leave for @coming, and when. */
struct search {
        struct stay *const *stays;
        size_t n;
        uint32_t device;
};

static bool may_go(const struct search *search, const struct stay *stay, uint64_t time)
{
        return stay->end <= time && !stay->is_chosen && get_bytes(stay, search->device) > 0;
}

static struct stay *find_first(const struct search *search, uint64_t now)
{
        struct stay *first = NULL;

        for (size_t i = 0; i < search->n; i++) {
                struct stay *stay = search->stays[i];

                if (may_go(search, stay, now) && (!first || goes_before(stay, first, now)))
                        first = stay;
        }
        return first;
}

static uint64_t sum_until(const struct search *search, uint64_t time)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < search->n; i++)
                if (may_go(search, search->stays[i], time))
                        sum = add(sum, get_bytes(search->stays[i], search->device));
        return sum;
}

/* When will those that may leave by then be enough? */
static uint64_t find_time(const struct search *search, uint64_t lack)
{
        uint64_t time = STAY_NEVER;

        for (size_t i = 0; i < search->n; i++) {
                uint64_t end = search->stays[i]->end;

                if (end < time && sum_until(search, end) >= lack)
                        time = end;
        }
        return time;
}

/* Coming in. */

/* Behind all that are interactive, but in the order of waiting. */
#define BEHIND (1ull << 62)

/* A decision about one device. */
struct device {
        int64_t free;     /* beside the room of vGPUs that wait longer */
        int64_t expected; /* when those that leave have left */
        uint64_t kept;    /* for them */
        bool is_closed;   /* one waits until others may leave: no other takes their room */
        bool is_shut_out; /* the batch class had nothing there for long */
        struct stay_contest contest;
};

struct decision {
        struct stay **stays;
        size_t n, n_devices, n_chosen;
        uint64_t now, next;
        struct device device[STAY_DEVICES_MAX];
};

static bool is_shut_out(const struct decision *decision, uint32_t device)
{
        for (size_t i = 0; i < decision->n; i++) {
                const struct stay *stay = decision->stays[i];

                if (get_class(stay) == STAY_BATCH && find_part(stay, device) &&
                    (stay->place != STAY_AWAY || add(stay->since, STAY_PATIENCE) > decision->now))
                        return false;
        }
        return true;
}

/* From one of its devices. */
static bool was_shut_out(const struct decision *decision, const struct stay *stay)
{
        bool was = false;

        for (size_t i = 0; i <= stay->n_more; i++)
                was |= decision->device[stay->part[i].device].is_shut_out;
        return was;
}

/*
 * The first of the batch class is next where that was shut out. And so are all of it that wait longer, on whatever
 * device: within the class none passes by.
 */
static uint64_t find_last_equal(const struct decision *decision)
{
        uint64_t last = 0;

        for (size_t i = 0; i < decision->n; i++)
                if (get_class(decision->stays[i]) == STAY_BATCH &&
                    was_shut_out(decision, decision->stays[i]))
                        last = later(last, decision->stays[i]->wants);
        return last;
}

static uint64_t get_rank(const struct stay *stay, uint64_t last_equal)
{
        return get_class(stay) == STAY_INTERACTIVE || stay->wants <= last_equal
                       ? stay->wants
                       : add(stay->wants, BEHIND);
}

static int compare_rank(const void *a, const void *b)
{
        const struct stay *left = *(struct stay *const *)a, *right = *(struct stay *const *)b;

        return (left->rank > right->rank) - (left->rank < right->rank);
}

static void sort(struct decision *decision)
{
        uint64_t last_equal = find_last_equal(decision);

        for (size_t i = 0; i < decision->n; i++)
                decision->stays[i]->rank = get_rank(decision->stays[i], last_equal);
        if (decision->n > 0)
                qsort(decision->stays, decision->n, sizeof(struct stay *), compare_rank);
}

/* HERE a failure has been one to leave, which is no reason to wait longer. */
static bool is_waiting(const struct stay *stay, uint64_t now)
{
        return stay->wants > 0 && !stay->is_chosen &&
               (stay->place == STAY_HERE || (stay->place == STAY_AWAY && stay->not_before <= now));
}

/* A vGPU that is coming in will say when that is, once it is there. None passes by one that waits for it. */
#define SOME_DAY (STAY_NEVER - 1)

/* One that works without taking turns may never be idle: none waits for that at the cost of others. */
static uint64_t find_end(const struct decision *decision, const struct stay *stay,
                         const struct stay *coming, uint32_t device)
{
        if (!stay->takes_turns && (stay->place == STAY_COMING || !is_idle(stay, decision->now)))
                return STAY_NEVER;
        if (stay->place == STAY_COMING)
                return stay->is_held ? STAY_NEVER : SOME_DAY;
        return stay_get_end_for(stay, coming, &decision->device[device].contest);
}

static struct search search_on(const struct decision *decision, const struct stay *coming,
                               uint32_t device)
{
        for (size_t i = 0; i < decision->n; i++)
                decision->stays[i]->end = find_end(decision, decision->stays[i], coming, device);
        return (struct search){ decision->stays, decision->n, device };
}

/* Parts of one that waits, which are given to it together. */
struct wish {
        struct stay *coming;
        struct stay_part *part;
        size_t n;
        bool is_behind; /* another one that waits comes first on one of these devices */
};

/* Not enough even some day: unless that is because of vGPUs that wait longer, and will leave again. */
static enum stay_verdict refuse(const struct search *search, const struct device *device,
                                uint64_t lack, struct wish *wish)
{
        if (lack > device->kept && find_time(search, lack - device->kept) == STAY_NEVER)
                return STAY_STUCK;
        wish->is_behind |= device->kept > 0;
        return device->kept > 0 ? STAY_LATER : STAY_STUCK;
}

static enum stay_verdict look_at_part(struct decision *decision, const struct stay_part *part,
                                      struct wish *wish)
{
        const struct device *device = &decision->device[part->device];
        int64_t needs = (int64_t)part->needs;
        struct search search;
        uint64_t lack, time;

        if (device->free >= needs)
                return STAY_COMES;
        wish->is_behind |= device->is_closed;
        if (device->is_closed)
                return STAY_LATER;
        if (wish->coming->is_modest)
                return STAY_STUCK;
        if (device->expected >= needs)
                return STAY_HELD;
        search = search_on(decision, wish->coming, part->device);
        lack = (uint64_t)(needs - device->expected);
        time = find_time(&search, lack);
        if (time <= decision->now)
                return STAY_HELD;
        if (time == STAY_NEVER)
                return refuse(&search, device, lack, wish);
        if (time < SOME_DAY)
                decision->next = sooner(decision->next, time);
        return STAY_LATER;
}

static void set_chosen(struct decision *decision, struct stay *stay, bool is_chosen)
{
        stay->is_chosen = is_chosen;
        for (size_t i = 0; i <= stay->n_more; i++)
                decision->device[stay->part[i].device].expected +=
                        is_chosen ? (int64_t)stay->part[i].bytes : -(int64_t)stay->part[i].bytes;
}

static void choose(struct decision *decision, const struct wish *wish, const struct stay_part *part)
{
        const struct device *device = &decision->device[part->device];
        struct search search;
        struct stay *stay;

        if (device->expected >= (int64_t)part->needs)
                return;
        search = search_on(decision, wish->coming, part->device);
        while (device->expected < (int64_t)part->needs &&
               (stay = find_first(&search, decision->now)) != NULL) {
                set_chosen(decision, stay, true);
                stay->order = decision->n_chosen++;
        }
}

static bool is_enough_without(const struct decision *decision, const struct wish *wish,
                              const struct stay *stay)
{
        for (size_t i = 0; i < wish->n; i++)
                if (decision->device[wish->part[i].device].expected -
                            (int64_t)get_bytes(stay, wish->part[i].device) <
                    (int64_t)wish->part[i].needs)
                        return false;
        return true;
}

static struct stay *find_chosen(const struct decision *decision, size_t order)
{
        for (size_t i = 0; i < decision->n; i++)
                if (decision->stays[i]->is_chosen && decision->stays[i]->order == order)
                        return decision->stays[i];
        return NULL;
}

/* Some that were chosen for their age may stay: the one that would go last first. */
static void spare(struct decision *decision, const struct wish *wish, size_t first)
{
        for (size_t order = decision->n_chosen; order-- > first;) {
                struct stay *stay = find_chosen(decision, order);

                if (stay && is_enough_without(decision, wish, stay))
                        set_chosen(decision, stay, false);
        }
}

static void make_room(struct decision *decision, const struct wish *wish)
{
        size_t first = decision->n_chosen;

        for (size_t i = 0; i < wish->n; i++)
                choose(decision, wish, &wish->part[i]);
        spare(decision, wish, first);
}

static void keep(struct decision *decision, const struct wish *wish, bool is_later)
{
        for (size_t i = 0; i < wish->n; i++) {
                struct device *device = &decision->device[wish->part[i].device];

                device->free -= (int64_t)wish->part[i].needs;
                device->expected -= (int64_t)wish->part[i].needs;
                device->kept = add(device->kept, wish->part[i].needs);
                device->is_closed |= is_later && wish->part[i].verdict != STAY_COMES;
        }
}

/* See the top of stay.h: all of it or nothing. */
static void decide_wish(struct decision *decision, struct wish *wish)
{
        enum stay_verdict worst = STAY_COMES;

        for (size_t i = 0; i < wish->n; i++) {
                struct stay_part *part = &wish->part[i];

                part->verdict = look_at_part(decision, part, wish);
                worst = part->verdict > worst ? part->verdict : worst;
        }
        if (worst > wish->coming->verdict)
                wish->coming->verdict = worst;
        if (worst == STAY_HELD)
                make_room(decision, wish);
        if (worst != STAY_STUCK && !wish->is_behind)
                keep(decision, wish, worst == STAY_LATER);
}

static void decide_one(struct decision *decision, struct stay *coming)
{
        if (coming->place == STAY_AWAY) {
                decide_wish(decision, &(struct wish){ .coming = coming,
                                                      .part = coming->part,
                                                      .n = coming->n_more + 1 });
                return;
        }
        for (size_t i = 0; i <= coming->n_more; i++)
                if (!coming->part[i].is_content)
                        decide_wish(decision, &(struct wish){ .coming = coming,
                                                              .part = &coming->part[i],
                                                              .n = 1 });
}

static void begin(struct decision *decision, struct stay *stay)
{
        stay->is_chosen = false;
        stay->verdict = STAY_NOTHING;
        if (has_rested(stay, decision->now))
                stay->was_cut = false;
        if (stay->wants > 0 && stay->not_before > decision->now)
                decision->next = sooner(decision->next, stay->not_before);
        for (size_t i = 0; i <= stay->n_more; i++) {
                stay->part[i].verdict = STAY_NOTHING;
                if (stay->place == STAY_LEAVING)
                        decision->device[stay->part[i].device].expected +=
                                (int64_t)stay->part[i].bytes;
        }
}

static void begin_devices(struct decision *decision)
{
        for (uint32_t i = 0; i < decision->n_devices; i++) {
                decision->device[i].is_shut_out = is_shut_out(decision, i);
                decision->device[i].contest =
                        stay_get_contest(decision->stays, decision->n, i, decision->now);
        }
}

uint64_t stay_decide(struct stay **stays, size_t n, const int64_t *free, size_t n_devices,
                     uint64_t now)
{
        struct decision decision = {
                .stays = stays, .n = n, .n_devices = n_devices, .now = now, .next = STAY_NEVER
        };

        for (size_t i = 0; i < n_devices; i++)
                decision.device[i].free = decision.device[i].expected = free[i];
        for (size_t i = 0; i < n; i++)
                begin(&decision, stays[i]);
        begin_devices(&decision);
        sort(&decision);
        for (size_t i = 0; i < n; i++)
                if (is_waiting(stays[i], now))
                        decide_one(&decision, stays[i]);
        for (size_t i = 0; i < n; i++)
                if (stays[i]->is_chosen)
                        stays[i]->was_cut = !is_idle(stays[i], now);
        return decision.next;
}
