/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_QUOTA_H
#define GATE_QUOTA_H

/*
 * The quota of the vGPU: how many bytes of device memory this process may still take.
 *
 * Charge before the driver is asked, refund after it has given back: so the sum of the charges is
 * never below what the vGPU really holds. Without a manager nothing is limited, and the sums are
 * kept all the same.
 *
 * A vGPU of several devices has a quota on each. @device is the driver's number of a device; without a
 * manager all devices are one.
 *
 * The sums of this process are kept here and copied to its slot of the instance page, so that what
 * another process writes into the page by mistake does not change what we believe of ourselves.
 */

#include <stdbool.h>
#include <stdint.h>

#include "gate/leave.h"
#include "state/instance-page.h"

/* Devices of a vGPU. */
#define QUOTA_PARTS_MAX 8

/*
 * quota_charge() - take @bytes, all or none; quota_settle() follows when the driver has answered. Below
 * a ceiling it waits for a moment, on an overcommitted device until others have left for it: the gate may close
 * meanwhile. Errors: -EDQUOT, over the quota, or the device's memory is promised to others.
 */
int quota_charge(int device, enum instance_page_kind kind, uint64_t bytes);

/* quota_settle() - end a charge: the driver has answered. */
void quota_settle(int device, uint64_t bytes);

/* quota_take_beside() - do the same for @bytes that the quota does not count. quota_settle() follows. */
int quota_take_beside(int device, uint64_t bytes);

/*
 * How far a thread is that waits for room: below the ceiling, or as the driver has too little. The manager sees
 * TOLD and what comes after it by what is wanted (state/instance-page.h).
 *
 *     from               to        when
 *     NONE               TOLD      it begins to wait
 *     TOLD, ANSWERED     ASKED     on an overcommitted device; ANSWERED: what was promised has not been enough
 *     ASKED              ANSWERED  the manager has made room: try
 *     ASKED              DENIED    all that could leave is not enough
 *     any                NONE      quota_end_wait()
 */
enum quota_wait {
        QUOTA_WAIT_NONE = 0,
        QUOTA_WAIT_TOLD,
        QUOTA_WAIT_ASKED,
        QUOTA_WAIT_ANSWERED,
        QUOTA_WAIT_DENIED,
};

/* What a thread lacks although the quota has it; all zero but the first ones to begin with. */
struct quota_want {
        int device;
        uint64_t bytes;
        bool is_limited; /* by the quota */
        bool is_charged; /* quota_settle() of @bytes follows only when we have given up, or have it */
        bool (*goes_on)(
                struct quota_want *want); /* asked now and then while it waits; NULL: it does */
        unsigned int
                n_tries; /* @bytes are a guess: see quota_is_in_vain(); 0: they are what it takes */

        enum quota_wait wait;
        uint64_t since_ns; /* that it is so */
        uint32_t ask;      /* its number, in @slot */
        struct instance_page_slot *slot;
        struct quota_want *outer; /* of the same thread, within which it waits */
        unsigned int n_answers;
        struct leave leave;
        uint64_t answered_ns; /* the first time */
};

/*
 * quota_wait_for_room() - the driver has no @want->bytes: ask the manager, and wait outside of the driver until
 * others have left; the gate may close meanwhile. What is charged counts meanwhile as asked of nobody, and is asked
 * again only under the ceiling: an undo may have been promised what became free. True: try again, and ask again if it was in vain. False: this
 * is no overcommitted device, it is over the quota, all that could leave is not enough, or it does not go on.
 * quota_end_wait() follows the last try: until then what has become free is held for us.
 *
 * quota_begin_wait() - before the first try, of what charges its @want->bytes in each try: if that waits below the
 * ceiling it is the same wait. Without, a wait begins with the first quota_wait_for_room().
 */
void quota_begin_wait(struct quota_want *want);
bool quota_wait_for_room(struct quota_want *want);
void quota_end_wait(struct quota_want *want);

/*
 * quota_is_in_vain() - room was made @want->n_tries times, and the first time is quota_in_vain_ns ago: what it lacks is no
 * room. Then quota_wait_for_room() is false. Tests shorten the time.
 */
bool quota_is_in_vain(const struct quota_want *want);
extern uint64_t quota_in_vain_ns;

/* quota_refund() - give @bytes back. */
void quota_refund(int device, enum instance_page_kind kind, uint64_t bytes);

/* quota_move() - change the kind of a charge from @from to @to. */
void quota_move(int device, enum instance_page_kind from, enum instance_page_kind to,
                uint64_t bytes);

/* quota_count_allocations() - count @n more live allocations, or fewer if @n is negative. */
void quota_count_allocations(int64_t n);

/*
 * quota_count_holds() - @n more, or with a negative @n fewer, of what keeps the process where it is;
 * @bits are GATE_HOLDS_*. quota_get_holds() - those bits of which there is any: what the instance page
 * says, too.
 */
void quota_count_holds(uint32_t bits, int n);
uint32_t quota_get_holds(void);

/* quota_count_launches() - count @n more launches of kernels, graphs and host functions. */
void quota_count_launches(uint64_t n);

/*
 * quota_get_page() - the instance page, of the first device, and our slot in it; NULL without a manager.
 * A page is never unmapped but in the child of a fork.
 */
struct instance_page *quota_get_page(uint32_t *ret_slot);

/* quota_has_several() - has the vGPU several devices? */
bool quota_has_several(void);

struct quota_view {
        bool is_limited;
        uint64_t limit;
        uint64_t left;                      /* of the whole vGPU */
        uint64_t used[INSTANCE_PAGE_KINDS]; /* by this process */
};

void quota_get(int device, struct quota_view *ret_view);

/*
 * quota_attach() - the manager has given us @slot of the instance pages behind @fds, one for each device,
 * which are taken (-1). What was counted so far moves along. Errors: -EPROTO, not instance pages, no such
 * slot, or not as many as the last time.
 */
int quota_attach(int *fds, uint32_t n, uint32_t slot);

/*
 * quota_set_order() - the driver shows @n of those devices: which is number 0, which number 1, ... Before the
 * driver is initialised; without, they have the order in which they were attached.
 */
void quota_set_order(const uint8_t *order, uint32_t n);

/* quota_get_part() - which of those devices is the driver's number @device? */
uint32_t quota_get_part(int device);

/*
 * quota_leave() - the slot is the manager's again: we count in a page of our own, without a limit, until
 * the next quota_attach().
 */
void quota_leave(void);

#endif
