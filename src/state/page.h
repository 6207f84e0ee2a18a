/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STATE_PAGE_H
#define STATE_PAGE_H

/*
 * The manager's end of an instance page (state/instance-page.h).
 *
 * Which slots are taken is remembered here and not in the page, where guests can
 * write. The page's memfd is sealed against resizing: a guest that could shorten
 * it would kill every reader with SIGBUS, the manager first.
 */

#include <stdbool.h>
#include <stdint.h>

#include "state/instance-page.h"

struct page {
        int fd; /* memfd; -1: empty */
        struct instance_page *map;
        uint64_t quota;
        uint8_t taken[INSTANCE_PAGE_SLOTS];
};

int page_create(struct page *page, uint64_t quota);

/* page_adopt() - map the page of a former manager; @fd is duplicated. Errors: -EPROTO. */
int page_adopt(struct page *page, int fd, uint64_t quota);
void page_deinit(struct page *page);

/* page_take_slot() - a free slot, zeroed. Errors: -ENOSPC. */
int page_take_slot(struct page *page, uint32_t *ret_slot);

/* page_claim_slot() - a slot that a process has had since before we started. Errors: -EBUSY. */
int page_claim_slot(struct page *page, uint32_t slot);
void page_give_slot(struct page *page, uint32_t slot);

/*
 * page_mend() - write anew what is ours, and zero every slot that is not taken: somebody may have
 * written there, or died while nobody looked. Done whenever a slot is taken or given back.
 */
void page_mend(struct page *page);

/* page_write_quota() - again and again, for a guest may have written there. */
void page_write_quota(struct page *page, uint64_t quota);

/*
 * page_lower_quota() - if its processes hold no more, also when a gate asks the driver at this moment
 *
 * Errors: -EDQUOT, they hold @ret_held; -EAGAIN, they may hold more in a moment. The quota is then as before.
 */
int page_lower_quota(struct page *page, uint64_t quota, uint64_t *ret_held);

/* page_write_ceiling() - @bytes that all of its processes may have in all until @until_ns; 0: no ceiling. */
void page_write_ceiling(struct page *page, uint64_t bytes, uint64_t until_ns);

/* page_write_waits() - who finds the device full waits for room. */
void page_write_waits(struct page *page, bool waits);

/* page_is_asking() - does one of its processes wait for room? */
bool page_is_asking(const struct page *page);

/* page_answer() - to all of them: try again, or that it is in vain. */
void page_answer(struct page *page, bool is_denied);

struct page_claim {
        uint64_t taken;   /* bytes, as the ceiling counts them */
        uint64_t pending; /* that the driver is being asked for */
        uint64_t wanted;  /* that threads wait for */
};

/*
 * page_read_claim() - of all processes
 * @limit: of each process, and of all together what is pending and wanted: more is cut off
 */
void page_read_claim(const struct page *page, uint64_t limit, struct page_claim *ret_claim);

/* page_read_pending() - what the process in @slot says that the driver is being asked for, cut off at @limit. */
uint64_t page_read_pending(const struct page *page, uint32_t slot, uint64_t limit);

struct page_use {
        uint64_t movable; /* bytes; with the fixed ones at most the limit that was given */
        uint64_t fixed;
        uint64_t peak; /* of their sum, as far as the limit */
        uint64_t launches;
        uint64_t refused; /* allocations that would have exceeded the quota */
        uint32_t holds;   /* GATE_HOLDS_* */
        uint32_t whole;   /* enum instance_page_whole; in the page of the first part */
        bool had_context; /* it has made one there, ever */
};

/* page_read() - what the process in @slot says it holds, cut off at @limit. */
void page_read(const struct page *page, uint32_t slot, uint64_t limit, struct page_use *ret_use);

#endif
