/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/minutes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "meter/rate.h"

void minutes_deinit(struct minutes *minutes)
{
        free(minutes->rows);
        free(minutes->buckets);
        *minutes = (struct minutes){ 0 };
}

void minutes_clear(struct minutes *minutes)
{
        minutes->n = 0;
        if (minutes->buckets)
                memset(minutes->buckets, 0, minutes->n_buckets * sizeof(*minutes->buckets));
}

static int has_key(const struct minutes_row *row, const struct usage_key *key)
{
        return row->key.process == key->process && row->key.vgpu == key->vgpu &&
               row->key.device == key->device;
}

static uint64_t hash(const struct usage_key *key, uint64_t minute)
{
        uint64_t value = key->process;

        value = (value ^ (value >> 29) ^ key->vgpu) * 0x9e3779b97f4a7c15u;
        value = (value ^ (value >> 32) ^ key->device) * 0x9e3779b97f4a7c15u;
        value = (value ^ (value >> 32) ^ minute) * 0x9e3779b97f4a7c15u;
        return value ^ (value >> 32);
}

/* Finds the bucket of a row, or the empty bucket where the row belongs. */
static uint32_t *find_bucket(const struct minutes *minutes, const struct usage_key *key,
                             uint64_t minute)
{
        size_t i = hash(key, minute) & (minutes->n_buckets - 1);

        for (;; i = (i + 1) & (minutes->n_buckets - 1)) {
                const struct minutes_row *row = &minutes->rows[minutes->buckets[i] - 1];

                if (minutes->buckets[i] == 0 || (row->minute == minute && has_key(row, key)))
                        return &minutes->buckets[i];
        }
}

static struct minutes_row *find_latest(const struct minutes *minutes, const struct usage_key *key)
{
        struct minutes_row *latest = NULL;

        for (size_t i = 0; i < minutes->n; i++) {
                struct minutes_row *row = &minutes->rows[i];

                if (has_key(row, key) && (!latest || row->minute > latest->minute))
                        latest = row;
        }
        return latest;
}

/* Allocates empty buckets. */
static void fill_buckets(struct minutes *minutes)
{
        for (size_t i = 0; i < minutes->n; i++) {
                const struct minutes_row *row = &minutes->rows[i];

                *find_bucket(minutes, &row->key, row->minute) = (uint32_t)i + 1;
        }
}

static int grow(struct minutes *minutes)
{
        size_t room = minutes->room ? 2 * minutes->room : 64;
        struct minutes_row *rows = reallocarray(minutes->rows, room, sizeof(*rows));
        uint32_t *buckets;

        if (!rows)
                return -ENOMEM;
        minutes->rows = rows;
        buckets = calloc(2 * room, sizeof(*buckets));
        if (!buckets)
                return -ENOMEM;
        free(minutes->buckets);
        minutes->buckets = buckets;
        minutes->n_buckets = 2 * room;
        minutes->room = room;
        fill_buckets(minutes);
        return 0;
}

static int get_row(struct minutes *minutes, const struct usage_key *key, uint64_t minute,
                   struct minutes_row **ret_row)
{
        uint32_t *bucket = minutes->n_buckets ? find_bucket(minutes, key, minute) : NULL;

        if (bucket && *bucket) {
                *ret_row = &minutes->rows[*bucket - 1];
                return 0;
        }
        if (minutes->n >= MINUTES_ROWS_MAX) {
                *ret_row = find_latest(minutes, key);
                if (*ret_row)
                        return 0;
        }
        if (minutes->n == minutes->room) {
                int r = grow(minutes);

                if (r < 0)
                        return r;
                bucket = find_bucket(minutes, key, minute);
        }
        *ret_row = &minutes->rows[minutes->n];
        **ret_row = (struct minutes_row){ .minute = minute, .key = *key };
        *bucket = (uint32_t)++minutes->n;
        return 0;
}

/* Takes the share of the first @part_ms of @whole_ms out of @amount, and returns it. */
static struct usage_amount cut(struct usage_amount *amount, uint64_t part_ms, uint64_t whole_ms)
{
        const uint64_t weights[2] = { part_ms, whole_ms - part_ms };
        struct usage_amount part;
        uint64_t parts[2];

        for (int engine = 0; engine < METER_ENGINES; engine++) {
                rate_divide(amount->busy_ns[engine], weights, 2, parts);
                part.busy_ns[engine] = parts[0];
                amount->busy_ns[engine] = parts[1];
        }
        rate_divide(amount->quota_mib_ms, weights, 2, parts);
        part.quota_mib_ms = parts[0];
        amount->quota_mib_ms = parts[1];
        rate_divide(amount->used_mib_ms, weights, 2, parts);
        part.used_mib_ms = parts[0];
        amount->used_mib_ms = parts[1];
        return part;
}

int minutes_add(struct minutes *minutes, const struct usage_key *key, struct usage_amount *amount,
                uint64_t from_ms, uint64_t to_ms)
{
        struct minutes_row *row;
        int r;

        while (from_ms < to_ms && from_ms / MS_PER_MINUTE < to_ms / MS_PER_MINUTE) {
                uint64_t end_ms = (from_ms / MS_PER_MINUTE + 1) * MS_PER_MINUTE;
                struct usage_amount part;

                r = get_row(minutes, key, from_ms / MS_PER_MINUTE, &row);
                if (r < 0)
                        return r;
                part = cut(amount, end_ms - from_ms, to_ms - from_ms);
                usage_add(&row->amount, &part);
                from_ms = end_ms;
        }
        if (usage_is_zero(amount))
                return 0;
        r = get_row(minutes, key, to_ms / MS_PER_MINUTE, &row);
        if (r < 0)
                return r;
        usage_add(&row->amount, amount);
        *amount = (struct usage_amount){ 0 };
        return 0;
}

static void remove_first(struct minutes *minutes, size_t n)
{
        size_t left = minutes->n - n;

        if (n == 0)
                return;
        memmove(minutes->rows, minutes->rows + n, left * sizeof(*minutes->rows));
        minutes_clear(minutes);
        minutes->n = left;
        fill_buckets(minutes);
}

int minutes_move(struct minutes *to, struct minutes *from)
{
        size_t n = 0;
        int r = 0;

        if (to->n == 0) {
                struct minutes empty = *to;

                *to = *from;
                *from = empty;
                return 0;
        }
        for (; n < from->n; n++) {
                struct minutes_row *row = &from->rows[n];
                uint64_t at_ms = row->minute * MS_PER_MINUTE;

                r = minutes_add(to, &row->key, &row->amount, at_ms, at_ms);
                if (r < 0)
                        break;
        }
        remove_first(from, n);
        return r;
}
