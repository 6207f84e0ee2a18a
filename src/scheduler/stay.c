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
 * Without work since then it counts as idle for those who wait. Where vGPUs take turns one would leave with work, too:
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

/* Who does not come to rest is not interactive, whatever its owner says. */
static enum stay_class get_class(const struct stay *stay)
{
        return stay->was_cut ? STAY_BATCH : stay->class;
}

struct stay_contest stay_get_contest(struct stay *const *stays, size_t n, uint64_t now)
{
        struct stay_contest contest = { .turn = STAY_TURN_MIN };

        for (size_t i = 0; i < n; i++) {
                const struct stay *stay = stays[i];

                if (stay->wants == 0 && (stay->place != STAY_HERE || is_idle(stay, now)))
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
                end = later(end, add(stay->since, stay->guaranteed));
        if (stay->takes_turns)
                end = sooner(end, add(stay->since, get_turn(stay, coming, contest)));
        return later(end, stay->not_before);
}

/* Who leaves for one that waits. */

/* Of two that may leave: without work before with it, then by class, then by age. */
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

static bool may_go(const struct stay *stay, uint64_t now)
{
        return stay->end <= now && !stay->is_chosen;
}

static struct stay *find_first(struct stay **stays, size_t n, uint64_t now)
{
        struct stay *first = NULL;

        for (size_t i = 0; i < n; i++)
                if (may_go(stays[i], now) && (!first || goes_before(stays[i], first, now)))
                        first = stays[i];
        return first;
}

/* Of those that were chosen for their age some may stay: the one that would go last first. */
static void spare(struct stay **chosen, size_t n, uint64_t surplus)
{
        while (n-- > 0)
                if (chosen[n]->bytes <= surplus) {
                        chosen[n]->is_chosen = false;
                        surplus -= chosen[n]->bytes;
                }
}

static uint64_t sum_until(struct stay *const *stays, size_t n, uint64_t time)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < n; i++)
                if (stays[i]->end <= time && !stays[i]->is_chosen)
                        sum = add(sum, stays[i]->bytes);
        return sum;
}

/* When will those that may leave by then be enough? */
static uint64_t find_time(struct stay *const *stays, size_t n, uint64_t lack)
{
        uint64_t time = STAY_NEVER;

        for (size_t i = 0; i < n; i++)
                if (stays[i]->end < time && sum_until(stays, n, stays[i]->end) >= lack)
                        time = stays[i]->end;
        return time;
}

static bool choose(struct stay **stays, size_t n, uint64_t lack, uint64_t now)
{
        struct stay **chosen;
        uint64_t sum = 0;
        size_t n_chosen = 0;

        if (sum_until(stays, n, now) < lack)
                return false;
        chosen = calloc(n, sizeof(struct stay *));
        if (!chosen)
                return false;
        while (sum < lack) {
                struct stay *stay = find_first(stays, n, now);

                stay->is_chosen = true;
                sum = add(sum, stay->bytes);
                chosen[n_chosen++] = stay;
        }
        spare(chosen, n_chosen, sum - lack);
        free(chosen);
        return true;
}

static uint64_t sum_chosen(struct stay *const *stays, size_t n)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < n; i++)
                if (stays[i]->is_chosen)
                        sum = add(sum, stays[i]->bytes);
        return sum;
}

/* Who comes. */

/* Behind all that are interactive, but in the order of waiting. */
#define BEHIND (1ull << 62)

/* Had the batch class nothing on the device for so long? Then the first of it is next. */
static bool is_shut_out(struct stay *const *stays, size_t n, uint64_t now)
{
        for (size_t i = 0; i < n; i++)
                if (get_class(stays[i]) == STAY_BATCH &&
                    (stays[i]->place != STAY_AWAY || add(stays[i]->since, STAY_PATIENCE) > now))
                        return false;
        return true;
}

static uint64_t get_rank(const struct stay *stay, bool is_shut_out)
{
        return get_class(stay) == STAY_INTERACTIVE || is_shut_out ? stay->wants
                                                                  : add(stay->wants, BEHIND);
}

static int compare_rank(const void *a, const void *b)
{
        const struct stay *left = *(struct stay *const *)a, *right = *(struct stay *const *)b;

        return (left->rank > right->rank) - (left->rank < right->rank);
}

static void sort(struct stay **stays, size_t n, uint64_t now)
{
        bool is_out = is_shut_out(stays, n, now);

        for (size_t i = 0; i < n; i++)
                stays[i]->rank = get_rank(stays[i], is_out);
        if (n > 0)
                qsort(stays, n, sizeof(*stays), compare_rank);
}

/* HERE a failure has been one to leave, which is no reason to wait longer. */
static bool is_waiting(const struct stay *stay, uint64_t now)
{
        return stay->wants > 0 && !stay->is_chosen &&
               (stay->place == STAY_HERE || (stay->place == STAY_AWAY && stay->not_before <= now));
}

struct decision {
        struct stay **stays;
        size_t n;
        uint64_t now, next;
        struct stay_contest contest;
        int64_t free;     /* beside what is for those who wait longer */
        int64_t expected; /* when those that leave have left */
        bool is_closed;   /* somebody waits until others may leave: nobody else takes their room */
};

static void count_expected(struct decision *decision)
{
        decision->expected = decision->free;
        for (size_t i = 0; i < decision->n; i++)
                if (decision->stays[i]->place == STAY_LEAVING)
                        decision->expected += (int64_t)decision->stays[i]->bytes;
}

/* One that works without taking turns may never be idle: nobody waits for that at the cost of others. */
static void find_ends(struct decision *decision, const struct stay *coming)
{
        for (size_t i = 0; i < decision->n; i++) {
                struct stay *stay = decision->stays[i];

                stay->end = stay->takes_turns || is_idle(stay, decision->now)
                                    ? stay_get_end_for(stay, coming, &decision->contest)
                                    : STAY_NEVER;
        }
}

static void make_room(struct decision *decision, struct stay *coming)
{
        struct stay **stays = decision->stays;
        int64_t needs = (int64_t)coming->needs;
        uint64_t lack = (uint64_t)(needs - decision->expected), before, time;

        find_ends(decision, coming);
        before = sum_chosen(stays, decision->n);
        if (choose(stays, decision->n, lack, decision->now)) {
                decision->expected += (int64_t)(sum_chosen(stays, decision->n) - before);
                coming->verdict = STAY_HELD;
                return;
        }
        time = find_time(stays, decision->n, lack);
        coming->verdict = time == STAY_NEVER ? STAY_STUCK : STAY_LATER;
        decision->next = sooner(decision->next, time);
        decision->is_closed |= coming->verdict == STAY_LATER;
}

static void decide_one(struct decision *decision, struct stay *coming)
{
        int64_t needs = (int64_t)coming->needs;

        if (decision->free >= needs)
                coming->verdict = STAY_COMES;
        else if (decision->is_closed)
                coming->verdict = STAY_LATER;
        else if (coming->is_modest)
                coming->verdict = STAY_STUCK;
        else if (decision->expected >= needs)
                coming->verdict = STAY_HELD;
        else
                make_room(decision, coming);
        if (coming->verdict == STAY_STUCK)
                return;
        decision->free -= needs;
        decision->expected -= needs;
}

uint64_t stay_decide(struct stay **stays, size_t n, int64_t free, uint64_t now)
{
        struct decision decision = {
                .stays = stays, .n = n, .now = now, .next = STAY_NEVER, .free = free
        };

        for (size_t i = 0; i < n; i++) {
                stays[i]->is_chosen = false;
                stays[i]->verdict = STAY_NOTHING;
                if (has_rested(stays[i], now))
                        stays[i]->was_cut = false;
                if (stays[i]->wants > 0 && stays[i]->not_before > now)
                        decision.next = sooner(decision.next, stays[i]->not_before);
        }
        sort(stays, n, now);
        decision.contest = stay_get_contest(stays, n, now);
        count_expected(&decision);
        for (size_t i = 0; i < n; i++)
                if (is_waiting(stays[i], now))
                        decide_one(&decision, stays[i]);
        for (size_t i = 0; i < n; i++)
                if (stays[i]->is_chosen)
                        stays[i]->was_cut = !is_idle(stays[i], now);
        return decision.next;
}
