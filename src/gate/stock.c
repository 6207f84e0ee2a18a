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

static unsigned int bin_of(uint64_t size)
{
        return 63u - (unsigned int)__builtin_clzll(size / STOCK_GRANULE);
}

static struct stock_range **bin_for(struct stock *stock, const struct stock_range *range)
{
        return &stock->bin[range->chunk->is_large][bin_of(range->size)];
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

static void bin_add(struct stock *stock, struct stock_range *range)
{
        struct stock_range **bin = bin_for(stock, range);

        range->previous = NULL;
        range->next = *bin;
        if (*bin)
                (*bin)->previous = range;
        *bin = range;
}

static void bin_remove(struct stock *stock, struct stock_range *range)
{
        if (range->previous)
                range->previous->next = range->next;
        else
                *bin_for(stock, range) = range->next;
        if (range->next)
                range->next->previous = range->previous;
}

static void marked_add(struct stock *stock, struct stock_range *range)
{
        range->younger = NULL;
        range->older = stock->youngest;
        if (stock->youngest)
                stock->youngest->younger = range;
        else
                stock->oldest = range;
        stock->youngest = range;
}

static void marked_remove(struct stock *stock, struct stock_range *range)
{
        if (range->older)
                range->older->younger = range->younger;
        else
                stock->oldest = range->younger;
        if (range->younger)
                range->younger->older = range->older;
        else
                stock->youngest = range->older;
}

static bool is_all(const struct stock_range *range)
{
        return range->size == range->chunk->size && !range->mark;
}

/* A free range, in the lists and out of them. */
static void enlist(struct stock *stock, struct stock_range *range)
{
        stock->n_unused += is_all(range);
        bin_add(stock, range);
        if (range->mark)
                marked_add(stock, range);
}

static void delist(struct stock *stock, struct stock_range *range)
{
        stock->n_unused -= is_all(range);
        bin_remove(stock, range);
        if (range->mark)
                marked_remove(stock, range);
}

static bool is_same(const struct stock_key *a, const struct stock_key *b)
{
        return a->stream && a->stream == b->stream && a->context == b->context;
}

static bool may_have(const struct stock_range *range, const struct stock_key *key)
{
        return !range->mark || range->mark->is_done || is_same(&range->mark->key, key);
}

static bool is_fit(const struct stock_range *range, uint64_t size, const struct stock_key *key,
                   unsigned int how)
{
        if (range->size < size || (!(how & STOCK_AFTER_OTHERS) && !may_have(range, key)))
                return false;
        if (atomic_load_explicit(&range->chunk->must_leave, memory_order_relaxed))
                return false;
        return !range->chunk->is_large || (how & STOCK_WASTEFUL) || range->size / WASTE_MAX <= size;
}

/* The smallest that is large enough: the first bin that has one has no larger one than the next. */
static struct stock_range *find(struct stock *stock, bool among_large, uint64_t size,
                                const struct stock_key *key, unsigned int how)
{
        struct stock_range *best = NULL;

        for (unsigned int i = bin_of(size); i < STOCK_BINS && !best; i++)
                for (struct stock_range *it = stock->bin[among_large][i]; it; it = it->next)
                        if (is_fit(it, size, key, how) && (!best || it->size < best->size)) {
                                best = it;
                                if (best->size == size)
                                        break;
                        }
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

/* What is put together has no marks, and is not among those that have. */
void stock_settle(struct stock *stock)
{
        struct stock_range *younger;

        for (struct stock_range *range = stock->oldest; range; range = younger) {
                younger = range->younger;
                if (!range->mark->is_done)
                        continue;
                delist(stock, range);
                stock_mark_drop(range->mark);
                range->mark = NULL;
                put(stock, range);
        }
}

void stock_drop_stream(struct stock *stock, const void *stream)
{
        for (struct stock_chunk *chunk = stock->chunks; chunk; chunk = chunk->next)
                for (struct stock_range *it = chunk->first; it; it = it->behind)
                        if (it->mark && it->mark->key.stream == stream)
                                it->mark->key.stream = NULL;
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
