/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From each candidate on, the best next one is added until there are enough; the best of these sets is taken.
 * Which devices can use each other's memory is nearly always a matter of groups: those behind one switch.
 */

#include "manager/methods/placement.h"

#include "manager/model/device.h"
#include "manager/model/instance.h"

struct set {
        const struct placement_candidate *member[INSTANCE_PARTS_MAX];
        size_t n;
        size_t n_links; /* pairs that can use each other's memory */
        int64_t left;
};

static bool are_linked(const struct device *a, const struct device *b)
{
        return (a->peers >> b->index & 1) && (b->peers >> a->index & 1);
}

static bool has(const struct set *set, const struct placement_candidate *candidate)
{
        for (size_t i = 0; i < set->n; i++)
                if (set->member[i] == candidate)
                        return true;
        return false;
}

static size_t count_links(const struct set *set, const struct placement_candidate *candidate)
{
        size_t n = 0;

        for (size_t i = 0; i < set->n; i++)
                n += are_linked(set->member[i]->device, candidate->device);
        return n;
}

static void add(struct set *set, const struct placement_candidate *candidate)
{
        set->n_links += count_links(set, candidate);
        set->left += candidate->left;
        set->member[set->n++] = candidate;
}

static const struct placement_candidate *
find_next(const struct set *set, const struct placement_candidate *candidates, size_t n_candidates)
{
        const struct placement_candidate *best = NULL;
        size_t most = 0;

        for (size_t i = 0; i < n_candidates; i++) {
                const struct placement_candidate *it = &candidates[i];
                size_t n_links = count_links(set, it);

                if (has(set, it) || (best && n_links < most) ||
                    (best && n_links == most && it->left <= best->left))
                        continue;
                best = it;
                most = n_links;
        }
        return best;
}

static bool is_better(const struct set *set, const struct set *than)
{
        if (than->n == 0 || set->n_links != than->n_links)
                return than->n == 0 || set->n_links > than->n_links;
        return set->left > than->left;
}

static void sort(const struct set *set, struct device **ret_devices)
{
        for (size_t i = 0; i < set->n; i++) {
                size_t at = i;

                for (; at > 0 && ret_devices[at - 1]->index > set->member[i]->device->index; at--)
                        ret_devices[at] = ret_devices[at - 1];
                ret_devices[at] = set->member[i]->device;
        }
}

bool placement_choose(struct device **ret_devices, size_t n,
                      const struct placement_candidate *candidates, size_t n_candidates)
{
        struct set best = { .n = 0 };

        if (n == 0 || n > n_candidates || n > INSTANCE_PARTS_MAX)
                return false;
        for (size_t i = 0; i < n_candidates; i++) {
                struct set set = { .n = 0 };

                add(&set, &candidates[i]);
                while (set.n < n)
                        add(&set, find_next(&set, candidates, n_candidates));
                if (is_better(&set, &best))
                        best = set;
        }
        sort(&best, ret_devices);
        return true;
}
