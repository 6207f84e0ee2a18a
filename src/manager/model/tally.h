/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_TALLY_H
#define MANAGER_TALLY_H

/*
 * The tally: how many operations of each kind ended how, since this manager began, how long they took
 * and how many bytes they moved. For monitoring; nothing of it outlives the manager.
 */

#include <stddef.h>
#include <stdint.h>

enum tally_result {
        TALLY_DONE,
        TALLY_UNDONE, /* it failed, and all is as it was before */
        TALLY_FAILED, /* and could not be undone */
        TALLY_RESULTS,
};

#define TALLY_KINDS        4
#define TALLY_BUCKETS      10
#define TALLY_BYTE_BUCKETS 10

#define TALLY_NAME_MAX 64

/* Of those with a pre-copy: what that did, and how long their programs stood still all the same. */
struct tally_ahead {
        uint64_t n, n_rounds, bytes, ns, stopped_ns;
};

struct tally_count {
        uint64_t n, ns, bytes;
        uint64_t bucket[TALLY_BUCKETS]; /* that took no longer than the bound of the bucket */
        uint64_t byte_bucket[TALLY_BYTE_BUCKETS]; /* that moved no more than its bound */
        struct tally_ahead ahead;
        struct {
                char vgpu[TALLY_NAME_MAX]; /* the name that it had; "": there was none yet */
                uint64_t ns, at_ns;        /* what it took; when it ended, CLOCK_REALTIME */
                uint64_t bytes;
        } last;
};

struct tally {
        uint64_t started_ns; /* CLOCK_REALTIME */
        struct tally_count count[TALLY_KINDS][TALLY_RESULTS];
};

/* An operation that has ended. */
struct tally_end {
        const char *kind; /* the name of a struct operation_kind */
        enum tally_result result;
        const char *vgpu; /* its name */
        uint64_t ns, bytes, at_ns;
        struct tally_ahead ahead; /* n: 1, or 0 without a pre-copy */
};

void tally_add(struct tally *tally, const struct tally_end *end);

/* As clients know them: of a kind, a result and a bucket, by number. Never freed. */
const char *tally_get_kind(size_t kind);
const char *tally_get_result(enum tally_result result);
double tally_get_bound(size_t bucket); /* seconds */
uint64_t tally_get_byte_bound(size_t bucket);

#endif
