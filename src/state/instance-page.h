/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STATE_INSTANCE_PAGE_H
#define STATE_INSTANCE_PAGE_H

/*
 * The instance page: shared memory of one vGPU instance, mapped by the manager
 * and by the gates of its processes (who may write into all of it).
 *
 * It answers one question without the manager: may this process allocate @n
 * bytes? Each process owns one slot and adds up there what it holds. The use of
 * the instance is the sum over the slots, so that a process that dies at any
 * instruction takes exactly its own share with it: the manager clears its slot.
 *
 * No lock is held for a charge: a process that is stopped in the middle of one (SIGSTOP, a debugger, a freezer)
 * stops no other. A process first announces in its slot what it will have (@claim), then reads all slots, and then
 * adds to its own or withdraws the claim. Of two at the same time at least one sees the claim of the other, so that
 * together they never have more than the quota. What fits beside what others have, and not beside their claims, is
 * tried again for a moment, for claims last less than a microsecond unless their process is stopped. What a slot has
 * is read as one word (@sum), which stays as it is while memory changes from one kind to another. Gates of former
 * versions announce nothing and lock the first byte of the page's file, which gates do not wait for any more.
 *
 * While a vGPU arrives on a device that is nearly full, nobody there may take its
 * promised memory. The page then has a ceiling, beside the quota, for all memory of
 * the instance, contexts included. A gate announces a charge as pending before it
 * reads the ceiling, and until the driver has answered. The manager writes the
 * ceiling before it reads pending charges. So at least one of them sees the other.
 *
 * A thread that waits for room says how much it wants. On an overcommitted device it asks as well, whether the driver
 * had too little or the ceiling is in its way: it counts up n_asks and waits for the answer, outside of the driver.
 * Then it tries again, and asks again if that was in vain. An ask of a process that wants nothing any more is over.
 *
 * The manager believes nothing it reads here: a guest that
 * writes garbage lies about itself only. @quota is the manager's to write; it
 * rewrites it at every sample.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INSTANCE_PAGE_MAGIC   0x45474150u /* "PAGE" */
#define INSTANCE_PAGE_VERSION 3u
#define INSTANCE_PAGE_SLOTS   128

/* Channels of one process that are told; a process has 8 and rarely more. */
#define INSTANCE_PAGE_CHANNELS 64

/* What kind of memory is charged: can it be moved by us, or only by the driver's checkpoint? */
enum instance_page_kind {
        INSTANCE_PAGE_MOVABLE = 0, /* the gate's exportable allocations */
        INSTANCE_PAGE_FIXED,       /* arrays, pools, managed, application-made or exported memory */
        INSTANCE_PAGE_KINDS,
};

/*
 * Has the process work for the device? Kept only while the manager wants to know. A process that
 * has never said anything has work.
 */
enum instance_page_work {
        INSTANCE_PAGE_WORKING = 0,
        INSTANCE_PAGE_IDLE,
        INSTANCE_PAGE_WAITING, /* none on the device: its threads wait for the vGPU's turn */
};

/*
 * Can the device interrupt the kernels of a process? A restore of the driver takes that away, and the gate puts it back.
 */
enum instance_page_whole {
        INSTANCE_PAGE_BORN = 0,        /* no restore has been */
        INSTANCE_PAGE_MENDED,          /* put back */
        INSTANCE_PAGE_UNWHOLE,         /* it could not be; the following say why */
        INSTANCE_PAGE_UNWHOLE_UNSEEN,  /* the gate has not seen how the context was made */
        INSTANCE_PAGE_UNWHOLE_RING,    /* a channel is not as expected, or busy */
        INSTANCE_PAGE_UNWHOLE_REFUSED, /* the kernel module refused a call */
        INSTANCE_PAGE_WHOLES,
};

static inline bool instance_page_is_unwhole(uint32_t whole)
{
        return whole >= INSTANCE_PAGE_UNWHOLE && whole < INSTANCE_PAGE_WHOLES;
}

/* For threads that take turns at the gate. */
enum instance_page_turn {
        INSTANCE_PAGE_FREE = 0, /* nobody else wants the device */
        INSTANCE_PAGE_CLOSED,   /* wait */
        INSTANCE_PAGE_OPEN,     /* go on, with little on the device at a time */
};

/*
 * A channel by which the process gives the graphics engine work, under the names that the driver's
 * kernel module has for it in that process. Who uses them asks the kernel module whether they are
 * the process' own.
 */
struct instance_page_channel {
        _Alignas(8) uint32_t client;
        uint32_t channel;
        uint32_t subdevice;
        int32_t fd; /* of the process, on which @client was made */
};

struct instance_page_channels {
        _Atomic uint32_t sequence; /* odd while it is written */
        _Atomic uint32_t n;        /* more than INSTANCE_PAGE_CHANNELS: they are not all told */
        uint64_t reserved[7];
        struct instance_page_channel channel[INSTANCE_PAGE_CHANNELS];
};

/* In an answer: all that others could ever leave is not enough. The rest of it is n_asks. */
#define INSTANCE_PAGE_DENIED ((uint64_t)1 << 32)

struct instance_page_slot {
        _Atomic uint64_t used[INSTANCE_PAGE_KINDS]; /* bytes */
        _Atomic uint64_t peak;                      /* bytes, of the sum */
        _Atomic uint64_t n_allocations;
        _Atomic uint64_t n_refused;  /* allocations over the quota */
        _Atomic uint64_t n_launches; /* kernels, graphs, host functions */
        _Atomic uint32_t work;       /* enum instance_page_work */
        _Atomic uint32_t holds;      /* bits, as a gate says them in CLOSED: GATE_HOLDS_* */
        _Atomic uint32_t n_works;    /* times that it had none and got some; with @work */
        _Atomic uint32_t whole;      /* enum instance_page_whole */
        _Atomic uint64_t pending;    /* bytes that the driver is being asked for */
        _Atomic uint64_t beside; /* bytes for contexts, ever: not charged, but under the ceiling */
        _Atomic uint64_t wanted; /* bytes that threads wait for: under the ceiling, or for room */
        _Atomic uint32_t n_asks; /* times that a thread began to wait for room */
        uint32_t reserved2;
        _Atomic uint64_t
                answer; /* the manager's: the last ask that is answered, INSTANCE_PAGE_DENIED */
        _Atomic uint64_t
                claim; /* bytes that the sum of @used is about to be, or is; 0: no charge */
        _Atomic uint64_t
                sum; /* bytes, of all kinds, in one word: no look falls between two; 0: also of a former version */
        uint64_t reserved3[1];
};

struct instance_page {
        uint32_t magic;
        uint32_t version;
        uint32_t n_slots;
        uint32_t reserved;
        _Atomic uint64_t quota;   /* bytes */
        _Atomic uint32_t turn;    /* futex; enum instance_page_turn */
        _Atomic uint32_t waits;   /* who finds the device full asks for room, and waits for it */
        _Atomic uint64_t ceiling; /* bytes; 0: none */
        _Atomic uint64_t
                ceiling_until_ns;   /* CLOCK_MONOTONIC: not any longer, if nobody renews it */
        _Atomic uint32_t is_eager;  /* the manager's: a change of work wakes it, by the next one */
        _Atomic uint32_t n_changes; /* futex; of the work of all slots, while is_eager */
        uint32_t reserved3[2];
        struct instance_page_slot slot[INSTANCE_PAGE_SLOTS];
        struct instance_page_channels channels[INSTANCE_PAGE_SLOTS];
};

_Static_assert(sizeof(struct instance_page_slot) == 128, "two cache lines a slot");
_Static_assert(sizeof(struct instance_page_channels) == 64 + 16 * INSTANCE_PAGE_CHANNELS, "");
_Static_assert(sizeof(struct instance_page) ==
                       64 + (128 + sizeof(struct instance_page_channels)) * INSTANCE_PAGE_SLOTS,
               "layout is the ABI");

/* Word by word, and in order with @sequence: one may read what another is writing. */
static inline void instance_page_copy_channel(struct instance_page_channel *to,
                                              const struct instance_page_channel *from)
{
        const _Atomic uint64_t *source = (const _Atomic uint64_t *)(const void *)from;
        _Atomic uint64_t *target = (_Atomic uint64_t *)(void *)to;

        for (size_t i = 0; i < sizeof(*to) / sizeof(*target); i++)
                atomic_store_explicit(&target[i],
                                      atomic_load_explicit(&source[i], memory_order_acquire),
                                      memory_order_release);
}

#endif
