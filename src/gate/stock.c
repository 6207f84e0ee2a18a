/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/stock.h"

#include <stdlib.h>

/* A large range is taken for an allocation of at least a half of it, while there is other room. */
#define WASTE_MAX 2

static uint64_t round_up(uint64_t bytes, uint64_t granule)
{
        return (bytes + granule - 1) / granule * granule;
}

static bool is_large(uint64_t bytes)
{
        return bytes >= STOCK_LARGE;
}

static uint64_t range_size(uint64_t bytes)
{
        return round_up(bytes, is_large(bytes) ? STOCK_CHUNK_SIZE : STOCK_GRANULE);
}

uint64_t stock_chunk_size(uint64_t bytes)
{
        return round_up(bytes, STOCK_CHUNK_SIZE);
}

static uint64_t used_bytes(uint64_t requested)
{
        return round_up(requested, STOCK_GRANULE);
}

void stock_mark_drop(struct stock_mark *mark)
{
        if (!mark || --mark->n_users > 0)
                return;
        mark->next = *mark->home;
        *mark->home = mark;
}

void stock_mark_outlive(struct stock_mark *mark, CUcontext context, CUcontext whole,
                        struct stock_mark **home)
{
        if (mark->key.context == context)
                mark->key.stream = NULL;
        if (mark->context != context)
                return;
        mark->context = whole;
        mark->home = home;
}

/* The trees: by size, then by address; each node is of a higher rank than those below it. */

static bool is_before(const struct stock_range *a, const struct stock_range *b)
{
        return a->size != b->size ? a->size < b->size : a->address < b->address;
}

/* As good as chance, for nothing asks for addresses by it. */
static uint64_t rank_of(const struct stock_range *range)
{
        uint64_t x = range->address / STOCK_GRANULE * 0x9e3779b97f4a7c15u;

        return (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
}

static struct stock_range **tree_for(struct stock_group *group, const struct stock_range *range)
{
        return &group->tree[range->chunk->is_large];
}

static void tree_split(struct stock_range *tree, const struct stock_range *at,
                       struct stock_range **smaller, struct stock_range **larger)
{
        while (tree) {
                if (is_before(tree, at)) {
                        *smaller = tree;
                        smaller = &tree->larger;
                        tree = tree->larger;
                } else {
                        *larger = tree;
                        larger = &tree->smaller;
                        tree = tree->smaller;
                }
        }
        *smaller = *larger = NULL;
}

static void tree_add(struct stock_range **tree, struct stock_range *range)
{
        uint64_t rank = rank_of(range);

        while (*tree && rank_of(*tree) >= rank)
                tree = is_before(*tree, range) ? &(*tree)->larger : &(*tree)->smaller;
        tree_split(*tree, range, &range->smaller, &range->larger);
        *tree = range;
}

static void tree_merge(struct stock_range **tree, struct stock_range *smaller,
                       struct stock_range *larger)
{
        while (smaller && larger) {
                if (rank_of(smaller) >= rank_of(larger)) {
                        *tree = smaller;
                        tree = &smaller->larger;
                        smaller = smaller->larger;
                } else {
                        *tree = larger;
                        tree = &larger->smaller;
                        larger = larger->smaller;
                }
        }
        *tree = smaller ? smaller : larger;
}

static void tree_remove(struct stock_range **tree, const struct stock_range *range)
{
        while (*tree != range)
                tree = is_before(*tree, range) ? &(*tree)->larger : &(*tree)->smaller;
        tree_merge(tree, range->smaller, range->larger);
}

/* The smallest of at least @size in a chunk that stays. */
static struct stock_range *tree_find(struct stock_range *tree, uint64_t size)
{
        struct stock_range *found = NULL;

        if (!tree)
                return NULL;
        if (tree->size >= size)
                found = tree_find(tree->smaller, size);
        if (!found && tree->size >= size &&
            !atomic_load_explicit(&tree->chunk->must_leave, memory_order_relaxed))
                found = tree;
        return found ? found : tree_find(tree->larger, size);
}

/* The groups. */

static bool is_same(const struct stock_key *a, const struct stock_key *b)
{
        return a->stream && a->stream == b->stream && a->context == b->context;
}

static struct stock_group *group_new(struct stock *stock, const struct stock_key *key)
{
        struct stock_group **end = &stock->streams;
        struct stock_group *group = calloc(1, sizeof(*group));

        if (!group)
                return &stock->unknown;
        group->key = *key;
        while (*end)
                end = &(*end)->next;
        *end = group;
        return group;
}

static struct stock_group *group_for(struct stock *stock, const struct stock_mark *mark)
{
        struct stock_group *group = stock->streams;

        if (!mark || !mark->key.stream)
                return mark ? &stock->unknown : &stock->unmarked;
        while (group && !is_same(&group->key, &mark->key))
                group = group->next;
        return group ? group : group_new(stock, &mark->key);
}

static void group_free_if_empty(struct stock *stock, struct stock_group *group)
{
        struct stock_group **link = &stock->streams;

        if (group->oldest || group == &stock->unmarked || group == &stock->unknown)
                return;
        while (*link != group)
                link = &(*link)->next;
        *link = group->next;
        free(group);
}

static void age_add(struct stock_group *group, struct stock_range *range)
{
        range->younger = NULL;
        range->older = group->youngest;
        if (group->youngest)
                group->youngest->younger = range;
        else
                group->oldest = range;
        group->youngest = range;
}

static void age_remove(struct stock_group *group, struct stock_range *range)
{
        if (range->older)
                range->older->younger = range->younger;
        else
                group->oldest = range->younger;
        if (range->younger)
                range->younger->older = range->older;
        else
                group->youngest = range->older;
}

static bool is_all(const struct stock_range *range)
{
        return range->size == range->chunk->size && !range->mark;
}

/* A free range, into its group and out of it. */
static void enlist(struct stock *stock, struct stock_range *range)
{
        stock->n_unused += is_all(range);
        range->group = group_for(stock, range->mark);
        tree_add(tree_for(range->group, range), range);
        age_add(range->group, range);
}

static void delist(struct stock *stock, struct stock_range *range)
{
        struct stock_group *group = range->group;

        stock->n_unused -= is_all(range);
        tree_remove(tree_for(group, range), range);
        age_remove(group, range);
        range->group = NULL;
        group_free_if_empty(stock, group);
}

static bool may_have(const struct stock_range *range, const struct stock_key *key)
{
        return !range->mark || range->mark->is_done || is_same(&range->mark->key, key);
}

/* The better one of @best and what @group has. */
static struct stock_range *find_in(const struct stock_group *group, bool among_large, uint64_t size,
                                   struct stock_range *best)
{
        struct stock_range *range = tree_find(group->tree[among_large], size);

        return range && (!best || range->size < best->size) ? range : best;
}

/* The smallest that is large enough, and not too large. */
static struct stock_range *find(struct stock *stock, bool among_large, uint64_t size,
                                const struct stock_key *key, unsigned int how)
{
        struct stock_range *best = find_in(&stock->unmarked, among_large, size, NULL);

        for (const struct stock_group *group = stock->streams; group; group = group->next)
                if ((how & STOCK_AFTER_OTHERS) || is_same(&group->key, key))
                        best = find_in(group, among_large, size, best);
        if (how & STOCK_AFTER_OTHERS)
                best = find_in(&stock->unknown, among_large, size, best);
        if (best && among_large && !(how & STOCK_WASTEFUL) && best->size / WASTE_MAX > size)
                return NULL;
        return best;
}

/* What is behind the first @size bytes of @range becomes a free range; without memory for it, it stays. */
static void cut(struct stock *stock, struct stock_range *range, uint64_t size)
{
        struct stock_range *rest;

        if (range->size == size)
                return;
        rest = calloc(1, sizeof(*rest));
        if (!rest)
                return;
        rest->chunk = range->chunk;
        rest->address = range->address + size;
        rest->size = range->size - size;
        rest->mark = range->mark;
        if (rest->mark)
                rest->mark->n_users++;
        rest->before = range;
        rest->behind = range->behind;
        if (rest->behind)
                rest->behind->before = rest;
        range->behind = rest;
        range->size = size;
        enlist(stock, rest);
}

static void count_used(struct stock *stock, struct stock_range *range, uint64_t bytes)
{
        range->requested = bytes;
        stock->used += used_bytes(bytes);
        if (stock->used > stock->used_high)
                stock->used_high = stock->used;
}

/* One that is not done is kept: the range may be given back without another one. */
static void forget_done(struct stock_range *range)
{
        if (!range->mark || !range->mark->is_done)
                return;
        stock_mark_drop(range->mark);
        range->mark = NULL;
}

struct stock_range *stock_take(struct stock *stock, uint64_t bytes, const struct stock_key *key,
                               unsigned int how, struct stock_mark **ret_mark)
{
        uint64_t size = range_size(bytes);
        struct stock_range *range = find(stock, is_large(bytes), size, key, how);

        *ret_mark = NULL;
        if (!range)
                return NULL;
        delist(stock, range);
        cut(stock, range, size);
        if (!may_have(range, key)) {
                *ret_mark = range->mark;
                range->mark->n_users++;
        }
        forget_done(range);
        count_used(stock, range, bytes);
        return range;
}

static void chunk_link(struct stock *stock, struct stock_chunk *chunk)
{
        chunk->stock = stock;
        chunk->next = stock->chunks;
        if (chunk->next)
                chunk->next->previous = chunk;
        stock->chunks = chunk;
        stock->reserved += chunk->size;
        if (stock->reserved > stock->reserved_high)
                stock->reserved_high = stock->reserved;
}

struct stock_range *stock_add(struct stock *stock, struct mapping *mapping, CUdeviceptr address,
                              uint64_t bytes)
{
        struct stock_chunk *chunk = calloc(1, sizeof(*chunk));
        struct stock_range *range = calloc(1, sizeof(*range));

        if (!chunk || !range) {
                free(chunk);
                free(range);
                return NULL;
        }
        chunk->mapping = mapping;
        chunk->size = stock_chunk_size(bytes);
        chunk->is_large = is_large(bytes);
        chunk->first = range;
        chunk_link(stock, chunk);
        range->chunk = chunk;
        range->address = address;
        range->size = chunk->size;
        cut(stock, range, range_size(bytes));
        count_used(stock, range, bytes);
        return range;
}

/* For certain, whatever threads did at the same time. */
static bool is_earlier(const struct stock_mark *a, const struct stock_mark *b)
{
        return a->end < b->begin;
}

/* May two free neighbours be one? */
static bool go_together(const struct stock_range *a, const struct stock_range *b)
{
        if (!a || !b || a->requested > 0 || b->requested > 0)
                return false;
        if (!a->mark || !b->mark)
                return !a->mark && !b->mark;
        return a->mark == b->mark ||
               (is_same(&a->mark->key, &b->mark->key) &&
                (is_earlier(a->mark, b->mark) || is_earlier(b->mark, a->mark)));
}

/* @left takes in @right; both are out of the lists. The later mark is behind the earlier one. */
static struct stock_range *join(struct stock_range *left, struct stock_range *right)
{
        struct stock_mark *late = left->mark, *early = right->mark;

        if (late && is_earlier(late, early)) {
                late = right->mark;
                early = left->mark;
        }
        stock_mark_drop(early);
        left->mark = late;
        left->size += right->size;
        left->behind = right->behind;
        if (left->behind)
                left->behind->before = left;
        free(right);
        return left;
}

/* A free range that is in no list: into them, with its neighbours. */
static void put(struct stock *stock, struct stock_range *range)
{
        if (go_together(range->before, range)) {
                delist(stock, range->before);
                range = join(range->before, range);
        }
        if (go_together(range, range->behind)) {
                delist(stock, range->behind);
                range = join(range, range->behind);
        }
        enlist(stock, range);
}

void stock_give_back(struct stock *stock, struct stock_range *range, struct stock_mark *mark)
{
        stock->used -= used_bytes(range->requested);
        range->requested = 0;
        range->is_being_freed = false;
        if (mark) {
                stock_mark_drop(range->mark);
                range->mark = mark;
                mark->n_users++;
        }
        forget_done(range);
        put(stock, range);
}

/* What is put together has no mark, and is in another group. */
static void settle_range(struct stock *stock, struct stock_range *range)
{
        delist(stock, range);
        stock_mark_drop(range->mark);
        range->mark = NULL;
        put(stock, range);
}

/* Those that are done, whatever is older. The group is gone with its last range. */
static void settle_group(struct stock *stock, struct stock_group *group)
{
        struct stock_range *range = group->oldest, *younger;

        for (; range; range = younger) {
                younger = range->younger;
                if (range->mark->is_done)
                        settle_range(stock, range);
        }
}

void stock_settle(struct stock *stock)
{
        struct stock_group *group = stock->streams, *next;

        for (; group; group = next) {
                next = group->next;
                settle_group(stock, group);
        }
        settle_group(stock, &stock->unknown);
}

/* True: the oldest that is left is not done. */
static bool look_at(struct stock *stock, struct stock_group *group,
                    bool (*is_done)(struct stock_mark *mark))
{
        struct stock_range *range = group->oldest, *younger;

        for (; range; range = younger) {
                younger = range->younger;
                if (!range->mark->is_done && !is_done(range->mark))
                        return true;
                range->mark->is_done = true;
                settle_range(stock, range);
        }
        return false;
}

size_t stock_look(struct stock *stock, size_t n_busy, bool (*is_done)(struct stock_mark *mark))
{
        struct stock_group *group = stock->streams, *next;
        size_t n = 0;

        for (; group && n < n_busy; group = next) {
                next = group->next;
                n += look_at(stock, group, is_done);
        }
        for (struct stock_range *it = stock->unknown.oldest; it && n < n_busy; it = it->younger)
                if (!it->mark->is_done)
                        n += !(it->mark->is_done = is_done(it->mark));
        settle_group(stock, &stock->unknown);
        return n;
}

bool stock_has_marks(const struct stock *stock)
{
        return stock->streams || stock->unknown.oldest;
}

void stock_drop_stream(struct stock *stock, const void *stream)
{
        for (struct stock_chunk *chunk = stock->chunks; chunk; chunk = chunk->next)
                for (struct stock_range *it = chunk->first; it; it = it->behind)
                        if (it->mark && it->mark->key.stream == stream)
                                it->mark->key.stream = NULL;
        for (struct stock_group *group = stock->streams; group; group = group->next)
                if (group->key.stream == stream)
                        group->key.stream =
                                NULL; /* a later stream of that name has not freed them */
}

void stock_drop_context(struct stock *stock, CUcontext context)
{
        for (struct stock_chunk *chunk = stock->chunks; chunk; chunk = chunk->next)
                for (struct stock_range *it = chunk->first; it; it = it->behind) {
                        if (it->mark && it->mark->context == context)
                                it->mark->is_done = true;
                        if (it->requested > 0)
                                forget_done(it);
                }
        stock_settle(stock);
}

void stock_outlive_context(struct stock *stock, CUcontext context, CUcontext whole,
                           struct stock_mark **home)
{
        for (struct stock_chunk *chunk = stock->chunks; chunk; chunk = chunk->next)
                for (struct stock_range *it = chunk->first; it; it = it->behind)
                        if (it->mark)
                                stock_mark_outlive(it->mark, context, whole, home);
        for (struct stock_group *group = stock->streams; group; group = group->next)
                if (group->key.context == context)
                        group->key.stream = NULL;
}

static bool is_unused(const struct stock_chunk *chunk)
{
        return chunk->first->requested == 0 && is_all(chunk->first);
}

static void chunk_unlink(struct stock *stock, struct stock_chunk *chunk)
{
        if (chunk->previous)
                chunk->previous->next = chunk->next;
        else
                stock->chunks = chunk->next;
        if (chunk->next)
                chunk->next->previous = chunk->previous;
        stock->reserved -= chunk->size;
}

void stock_take_chunk(struct stock *stock, struct stock_chunk *chunk)
{
        struct stock_range *range;

        chunk_unlink(stock, chunk);
        while ((range = chunk->first)) {
                chunk->first = range->behind;
                if (range->requested > 0)
                        stock->used -= used_bytes(range->requested);
                else
                        delist(stock, range);
                stock_mark_drop(range->mark);
                free(range);
        }
}

void stock_hurry(struct stock_chunk *chunk)
{
        atomic_store(&chunk->must_leave, true);
        atomic_store(&chunk->stock->is_hurried, true);
}

static struct stock_chunk *find_unused(const struct stock *stock, bool is_any)
{
        struct stock_chunk *chunk = stock->chunks;

        while (chunk && !(is_unused(chunk) && (is_any || atomic_load(&chunk->must_leave))))
                chunk = chunk->next;
        return chunk;
}

struct stock_chunk *stock_reap(struct stock *stock, uint64_t keep)
{
        struct stock_chunk *chunk = NULL;
        bool is_any = stock->reserved > keep;

        if (stock->n_unused > 0 && (is_any || atomic_load(&stock->is_hurried)))
                chunk = find_unused(stock, is_any);
        if (chunk)
                stock_take_chunk(stock, chunk);
        return chunk;
}
