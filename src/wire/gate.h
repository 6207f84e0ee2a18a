/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRE_GATE_H
#define WIRE_GATE_H

/*
 * The messages between the gate of a guest process and the manager, over a
 * SOCK_SEQPACKET connection to PATHS_GATE_SOCKET that lives as long as both do.
 * Every message starts with struct gate_header; descriptors travel beside it.
 *
 *   gate -> manager                  manager -> gate
 *   ORDER           instead         MADE or REFUSED, then hang-up
 *   JOIN            first            WELCOME (+ the instance page of each device) or REFUSED,
 *                                              then hang-up
 *                                    CLOSE     close the gate: drain calls, synchronize
 *   CLOSED          drained, or      STEP      let threads make some launches, then close again
 *                   why not (it
 *                   is open again)
 *   CLOSED          drained again    EXPORT    descriptors of all movable memory, please
 *   ALLOCATIONS*, EXPORTED           RELEASE   unmap and release it (addresses stay reserved)
 *   RELEASED                         CREATE    make new memory at all those addresses
 *   ALLOCATIONS*, CREATED            MAP*      undo: map these descriptors at those addresses
 *   MAPPED          after the last   OPEN      let the threads go on
 *   OPENED
 *                                    WATCH     does it have work? (no answer)
 *   IMPORT*, TAKEN                   TAKE      import again what others have made
 *   IMPORT          for a ticket     IMPORTED  what it stands for
 *   OFFERED                          OFFER     that is wanted
 *   USES            whose memory it
 *                   has (no answer)
 *   SEEN            which devices
 *                   its driver sees
 *                   (no answer)
 *   WAITING         a thread waits
 *                   at the closed
 *                   gate (no answer)
 *
 * The guest creates its memory itself, also at resume, because of what driver 580 does with a
 * handle that was imported: it cannot be exported again, a process that holds one does not survive
 * the driver's own checkpoint (the restore fails with 801), and after a move to another device an
 * import fails or is slow. MAP imports all the same, as the undo of a RELEASE whose copy did not
 * come about: the gate keeps those descriptors, answers the next EXPORT with them, and the next
 * RELEASE lets them go. A process that may not have so many descriptors at once says so (EMFILE, nothing is mapped), and
 * gets fewer in each MAP. Where MAP fails, CREATE and a copy take its place.
 *
 * MAP with GIVEN is for memory that another guest has left, and that has been filled anew for this one: so
 * the driver need not clear it and make it anew. All descriptors are kept. It takes the place of CREATE, and
 * the state is CLOSED when all allocations have memory, and RELEASED before.
 *
 * RELEASE and CREATE say for which addresses; ALLOCATIONS come in the order of addresses. While any
 * allocation is without memory the state is RELEASED. RELEASE passes over those that have none,
 * CREATE over those that have some. So memory can come back piece by piece where there is no room
 * for it twice.
 *
 * STEP is for processes whose kernels wait for each other's: one that is drained goes on a little, so
 * that others can come to rest. It is answered as CLOSE is.
 *
 * A step may be refused: the answer carries a result and the name of the failed driver call, and
 * the gate is then in the state of before the step. CLOSE refused leaves the gate open.
 *
 * When the connection breaks, a gate that was not told to RELEASE opens by itself: its memory is as
 * the guest left it. From RELEASE to OPEN it stays closed, also with memory mapped again, for that
 * may not be filled yet; it connects again until a manager answers, and says in JOIN how far it is.
 * The manager then finishes or undoes what its predecessor began.
 *
 * The manager trusts nothing in here: the process is the one of SO_PEERCRED, sizes are checked,
 * and what a guest claims can only harm that guest.
 */

#include <stddef.h>
#include <stdint.h>

/*
 * Both sides compare: another number is refused with a message that says who must be upgraded. A gate of
 * the oldest number knows vGPUs of one device only. The manager answers each gate under the gate's number. Gates
 * of 7 to 9 also take a message that no manager sends any more.
 */
#define GATE_WIRE_VERSION 10u
#define GATE_WIRE_DEVICES 6u /* from here on a gate knows vGPUs of several devices, */
#define GATE_WIRE_HIDDEN  8u /* and has its driver see devices that it hides from the program */
#define GATE_WIRE_SEEN    9u /* it hides none, and says which the driver sees */
#define GATE_WIRE_OLDEST  5u
#define GATE_WIRE_MAGIC   0x45544147u /* "GATE" */

enum gate_message {
        GATE_JOIN = 1,
        GATE_CLOSED,
        GATE_ALLOCATIONS,
        GATE_EXPORTED,
        GATE_RELEASED,
        GATE_MAPPED,
        GATE_OPENED,
        GATE_CREATED,
        GATE_WAITING,
        GATE_TAKEN,
        GATE_IMPORT,
        GATE_OFFERED,
        GATE_USES,
        GATE_ORDER,
        GATE_SEEN,

        GATE_WELCOME = 64,
        GATE_REFUSED,
        GATE_CLOSE,
        GATE_EXPORT,
        GATE_RELEASE,
        GATE_MAP,
        GATE_OPEN,
        GATE_CREATE,
        GATE_WATCH,
        GATE_STEP,
        GATE_TAKE,
        GATE_IMPORTED,
        GATE_OFFER,
        GATE_MADE,
};

/* How far a gate has gone; the manager learns it from JOIN. */
enum gate_state {
        GATE_STATE_OPEN = 0,
        GATE_STATE_CLOSED,   /* drained; memory is mapped: still, or again by CREATE or MAP */
        GATE_STATE_RELEASED, /* its movable memory, or some of it, is not mapped any more */
        GATE_STATE_CREATED,  /* in JOIN: CLOSED, by CREATE: the memory may not be filled yet */
};

struct gate_header {
        uint32_t magic;   /* GATE_WIRE_MAGIC */
        uint16_t version; /* GATE_WIRE_VERSION, or that of an older gate */
        uint16_t message; /* enum gate_message */
};

/* The device memory behind one mapping of the guest; @address names it for as long as it lives. */
struct gate_allocation {
        uint64_t address; /* the guest's virtual address, reserved across a suspend */
        uint64_t size;    /* bytes, a multiple of the driver's granularity */
};

#define GATE_VGPU_NAME_MAX 64
#define GATE_TEXT_MAX      256
#define GATE_DEVICES_MAX   8  /* of a vGPU */
#define GATE_SEEN_MAX      32 /* of a host, as far as drivers see others than those of their vGPU */

struct gate_join {
        struct gate_header header;
        char vgpu[GATE_VGPU_NAME_MAX]; /* the instance's UUID as text, from OPENVGPU_VGPU */
        uint32_t state;                /* enum gate_state */
        uint32_t driver_version;       /* cuDriverGetVersion(), e.g. 13000 */
        uint64_t start_time;           /* of this process, /proc/self/stat field 22 */
        uint32_t n_imports;   /* pieces of other processes' memory that it has, or had let go */
        uint32_t ticket_slot; /* that its tickets bear, and 1; 0: it has given out none */
        /* From GATE_WIRE_HIDDEN on: as in SEEN. None: those of its vGPU, or it has no WELCOME yet. */
        uint32_t seen[GATE_SEEN_MAX];
};

/* gate_mark() - of a device, by its UUID, in few bytes: never 0. */
static inline uint32_t gate_mark(const char *uuid)
{
        uint32_t mark = 2166136261u; /* FNV-1a */

        for (; *uuid; uuid++)
                mark = (mark ^ (unsigned char)*uuid) * 16777619u;
        return mark ? mark : 1;
}

static inline uint32_t gate_join_size(uint16_t version)
{
        return (uint32_t)(version < GATE_WIRE_HIDDEN ? offsetof(struct gate_join, seen)
                                                     : sizeof(struct gate_join));
}

/*
 * At the door of containers that have no vGPU yet: make one for mine, which is gone with it, or say which it has.
 * A connection of its own, answered by MADE or REFUSED. Sent while OPENVGPU_VGPU is GATE_VGPU_NEW.
 */
#define GATE_VGPU_NEW "new"

struct gate_order {
        struct gate_header header;
        char frame_buffer[32]; /* as OPENVGPU_FB has it: "20G"; "": none */
        char share[16]; /* as OPENVGPU_SHARE has it: percent of the device's time; "": none */
};

struct gate_made {
        struct gate_header header;
        char vgpu[GATE_VGPU_NAME_MAX]; /* UUID, for JOIN */
};

struct gate_welcome {
        struct gate_header header;
        uint32_t slot;      /* the process' slot in each instance page */
        uint32_t n_devices; /* of the vGPU; so many descriptors come with it, of their pages */
        /*
         * "GPU-...", the devices that the instance is on now; behind them, from GATE_WIRE_SEEN on, all others of the
         * host: the gate chooses whether its driver sees those. One of GATE_WIRE_HIDDEN is told of them where the
         * vGPU has several devices, and its driver sees them. Only as many are sent as there are.
         */
        char device_uuid[GATE_SEEN_MAX][48];
};

static inline uint32_t gate_welcome_size(uint32_t n_seen)
{
        return (uint32_t)(offsetof(struct gate_welcome, device_uuid) + n_seen * 48);
}

/* gate_welcome_count() - how many a message of @size names */
static inline uint32_t gate_welcome_count(size_t size)
{
        return (uint32_t)((size - offsetof(struct gate_welcome, device_uuid)) / 48);
}

/*
 * From GATE_WIRE_SEEN on, behind WELCOME, and whenever it changes: to devices that its driver has seen a process can be
 * moved that shares memory with others. Until it comes: those of its vGPU.
 */
struct gate_seen {
        struct gate_header header;
        uint32_t mark[GATE_SEEN_MAX]; /* gate_mark() of each; 0 behind the last */
};

struct gate_refused {
        struct gate_header header;
        int32_t error;            /* a positive errno */
        char text[GATE_TEXT_MAX]; /* one line for the person who started the guest */
};

/*
 * What an answer says of the process besides. One whose driver has ended or whose context is broken
 * can take no part any more; it shall not hold the others of its vGPU, and is not held itself: a
 * thread that waits at the gate would wait for ever. The manager forgets the guest with all that it
 * holds of it.
 */
enum gate_fate {
        GATE_FATE_STAYS = 0,
        GATE_FATE_ENDS, /* the driver has ended: so has the process, soon. It is open, and hangs up for good */
        /*
         * The context is broken: the driver answers every call with the same error. In CLOSED: why
         * it is open again. Else it was between RELEASE and OPEN, is open now without its memory,
         * hangs up and joins anew.
         */
        GATE_FATE_BROKEN,
        /*
         * Memory of another process, which it had let go, is gone for ever: that process has ended.
         * As BROKEN it is open now without that memory, hangs up and joins anew.
         */
        GATE_FATE_BEREFT,
};

struct gate_close {
        struct gate_header header;
        uint32_t timeout_ms; /* for everything: captures end, calls drain, work finishes */
        uint32_t reserved;
};

struct gate_step {
        struct gate_header header;
        uint32_t n_launches; /* that the threads may make together, at least 1 */
        uint32_t window_ms;  /* what has not been made by then is not made any more */
        uint32_t timeout_ms; /* for everything, as in CLOSE */
        uint32_t reserved;
};

/* What keeps a process where it is; --keep-context does not mind. */
#define GATE_HOLDS_MANAGED 1u /* cuMemAllocManaged: the checkpoint answers 801 */
#define GATE_HOLDS_IMPORTED \
        2u /* memory of a process without a gate: the restore would lose the guest */
#define GATE_HOLDS_REGISTERED 4u /* a dma-buf of its memory: a network card would use the old one */
#define GATE_HOLDS_FABRIC     8u /* memory with a fabric handle: of other machines */
#define GATE_HOLDS_MULTICAST  16u /* a multicast object (NVLink SHARP) */
#define GATE_HOLDS_EXPORTED \
        32u /* memory that others have by the driver's own handle, not by a ticket */
#define GATE_HOLDS_UNPROVEN \
        64u /* of other libraries, or a sparse array: nobody knows what a checkpoint makes of it */
#define GATE_HOLDS_MANAGED_POOL \
        128u /* a pool of managed memory, even empty: the restore loses the guest */
#define GATE_HOLDS_HOST_POOL 256u /* memory of a pool on the host: the checkpoint never returns */
#define GATE_HOLDS_KINDS     9

/*
 * Shall the gate say in the instance page whether the process has work for the device (REPORT), and
 * let its work on the device only in its vGPU's turns (TURNS)? Sent at any time, also while a
 * request is under way, and not answered. A gate that loses its manager goes back to NOTHING.
 *
 * @wants_waiting: shall the gate send WAITING when a thread of the process comes to the gate while
 * the gate is closed? Once for each time that it is closed, and anew after each WATCH that asks for
 * it. A gate that is not asked never sends it, so neither side needs to know how old the other is.
 */
enum gate_watch {
        GATE_WATCH_NOTHING = 0,
        GATE_WATCH_REPORT,
        GATE_WATCH_TURNS,
};

struct gate_watch_message {
        struct gate_header header;
        uint32_t watch; /* enum gate_watch */
        uint32_t wants_waiting;
};

struct gate_waiting {
        struct gate_header header;
};

struct gate_closed {
        struct gate_header header;
        int32_t error;          /* 0, or a positive errno: ETIMEDOUT, EBUSY, EIO (driver) */
        int32_t driver_code;    /* CUresult of the failed call, or 0 */
        uint64_t movable_bytes; /* what EXPORT will hand over */
        uint32_t n_allocations;
        uint32_t holds;      /* GATE_HOLDS_* */
        uint32_t fate;       /* enum gate_fate */
        uint16_t can_step;   /* not 0: it knows STEP */
        uint16_t n_launches; /* made in the STEP that this answers */
        uint32_t n_imports;  /* pieces of other processes' memory */
        uint32_t reserved;
        char call[64]; /* the driver call that failed or that a thread sits in */
};

/* Up to this many allocations, each with one descriptor, in one ALLOCATIONS or MAP message. */
#define GATE_BATCH_MAX 64

enum gate_batch_flag {
        GATE_BATCH_LAST = 1 << 0, /* MAP: only this batch is answered, also after a failure */
        GATE_BATCH_GIVEN =
                1 << 1, /* MAP, with LAST: see above; only what it has told to be PLAIN */
        GATE_BATCH_PLAIN =
                1 << 2, /* ALLOCATIONS: another's plain memory of that size would do as well */
};

struct gate_allocations { /* ALLOCATIONS and MAP */
        struct gate_header header;
        uint32_t count;
        uint16_t flags;  /* enum gate_batch_flag; a gate that knows none of them says nothing */
        uint16_t device; /* ALLOCATIONS: on which of WELCOME's devices all of them are */
        struct gate_allocation allocation[GATE_BATCH_MAX];
};

/* The allocations whose addresses are from @from on and below @to. */
struct gate_range {
        uint64_t from, to;
};

#define GATE_RANGE_ALL ((struct gate_range){ 0, UINT64_MAX })

struct gate_result { /* EXPORTED, RELEASED, CREATED, MAPPED, OPENED, TAKEN */
        struct gate_header header;
        int32_t error;       /* 0, or a positive errno */
        int32_t driver_code; /* CUresult of the failed call, or 0 */
        uint64_t bytes;      /* EXPORTED, CREATED: of all batches */
        uint32_t fate;       /* enum gate_fate */
        uint32_t state;      /* enum gate_state, after the step */
        char call[64];
};

/*
 * Memory that processes share.
 *
 * What a program gets when it exports memory is a ticket, and who imports it sends the ticket to the
 * manager (IMPORT). The manager asks the gate of the process that made the memory for a descriptor
 * (OFFER, OFFERED) and passes it on (IMPORTED): if both vGPUs have one owner, and only then. One
 * IMPORT of a gate is under way at a time: a newer one withdraws the one before. A gate that closes
 * gives up its question, waits for no answer, and asks again when it is open.
 *
 * RELEASE lets go of imported memory, too. It comes back with TAKE, once the processes that made it
 * have created theirs: the gate sends IMPORT for one after the other, and then TAKEN. Until then OPEN
 * is refused. TAKE may also only ask whether all of that would be possible, and changes nothing.
 *
 * USES says whose memory the process has: after JOIN, and when it has let go of some for good, or could not take some. Of several
 * that come before the manager gets to them, only the last counts.
 */

/* A process that has joined; all that a ticket says of where it comes from. */
struct gate_process {
        uint8_t vgpu[16];    /* UUID */
        uint64_t start_time; /* as in JOIN: the slot may be another's by now */
        uint32_t slot;       /* the first that it had: it may join anew, but its tickets stay */
        uint32_t mark;       /* GATE_TICKET_MARK */
};

#define GATE_TICKET_MARK 0x544b5456u /* "VTKT" */
#define GATE_NAME_SIZE   16

/* Pieces of others' memory that a process may have; the manager hangs up on a gate that says more. */
#define GATE_IMPORTS_MAX 65536

struct gate_ticket {
        struct gate_process process;
        uint8_t name[GATE_NAME_SIZE]; /* of the memory: random; who knows it may have the memory */
        uint64_t offset, size;        /* of the allocation in it (legacy IPC), or of all of it */
};

_Static_assert(sizeof(struct gate_ticket) == 64, "a ticket is a handle of legacy IPC");

struct gate_import {
        struct gate_header header;
        uint64_t number; /* of the question; the newest counts */
        struct gate_ticket ticket;
};

struct gate_imported { /* with a descriptor, if error is 0 */
        struct gate_header header;
        uint64_t number; /* of the question */
        /*
         * 0, or a positive errno: EAGAIN (away just now), ESRCH (its process has ended), ENOENT (it
         * has been freed), EPERM (another owner's), ETIMEDOUT (its gate does not answer), EIO
         */
        int32_t error;
        uint32_t reserved;
};

struct gate_offer {
        struct gate_header header;
        uint64_t number; /* of the question */
        uint8_t name[GATE_NAME_SIZE];
};

struct gate_offered { /* with a descriptor, if error is 0 */
        struct gate_header header;
        uint64_t number;
        int32_t error; /* 0, or a positive errno */
        uint32_t reserved;
};

#define GATE_USES_MAX 64 /* processes; of more the manager hears when they are asked for memory */

struct gate_uses {
        struct gate_header header;
        uint32_t count;
        int32_t error; /* 0, or why it could not take what it was given: EMFILE */
        struct gate_process process[GATE_USES_MAX];
};

struct gate_take {
        struct gate_header header;
        uint32_t is_question;
        uint32_t reserved;
};

struct gate_command { /* EXPORT, RELEASE, CREATE, OPEN */
        struct gate_header header;
        struct gate_range range; /* RELEASE, CREATE */
};

#endif
