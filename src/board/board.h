/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BOARD_BOARD_H
#define BOARD_BOARD_H

/*
 * The state page (in the code: the board): the manager's published state, one file in the run
 * directory that any process may map read-only. One writer, any number of readers, no locks.
 *
 * Each record has two copies and a sequence counter. Each write changes the counter, which says
 * which of the two copies is not being written. A reader takes this copy if the counter was the
 * same before and after (board_read_device() and the others do this). Nobody therefore waits for a
 * manager that is stopped or dies in the middle of a record: a reader gets the former contents.
 * @generation counts changes of the whole page.
 *
 * A new manager makes a new file and renames it over the old one. A reader opens the file again
 * when it finds @closed set or @heartbeat_ns (CLOCK_MONOTONIC) older than BOARD_STALE_NS.
 *
 * The file is sparse. Its size is that of all possible records, some GiB. It takes memory and disk
 * only for records that were ever used, some tens of KiB for each vGPU and process.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "board/device.h"
#include "board/instance.h"
#include "board/type.h"
#include "board/usage.h"

#define BOARD_MAGIC   0x44524f42u /* "BORD" */
#define BOARD_VERSION 9u

#define BOARD_STALE_NS 3000000000ull

/* Of a record that could not be appended. */
#define BOARD_NO_NUMBER UINT64_MAX

/*
 * The tables: T(noun, struct, slots). The slots of a table, and how to find one:
 *
 *     host                                0
 *     device, device_detail, sensors,     the device's index
 *     features, links
 *     profile                             board_slot_of_profile()
 *     gpu_instance, compute_instance,     any; read them all
 *     memory_limit
 *     offers                              a site: board_site_of_device(), .._of_gpu_instance()
 *     scheduler                           board_slot_of_scheduler()
 *     type, type_text, placements         board_find_type()
 *     instance, vm                        any, and the same while the instance lives
 *     process, encoder_session,           any; read them all
 *     capture_session
 */
#define BOARD_PROFILE_SLOTS   (BOARD_DEVICES_MAX * BOARD_PROFILES_MAX)
#define BOARD_SCHEDULER_SLOTS (BOARD_SITES_MAX * BOARD_ENGINES)

#define BOARD_TABLES(T)                                                          \
        T(host, board_host, 1)                                                   \
        T(device, board_device, BOARD_DEVICES_MAX)                               \
        T(device_detail, board_device_detail, BOARD_DEVICES_MAX)                 \
        T(sensors, board_sensors, BOARD_DEVICES_MAX)                             \
        T(features, board_features, BOARD_DEVICES_MAX)                           \
        T(links, board_links, BOARD_DEVICES_MAX)                                 \
        T(profile, board_profile, BOARD_PROFILE_SLOTS)                           \
        T(gpu_instance, board_gpu_instance, BOARD_GPU_INSTANCES_MAX)             \
        T(compute_instance, board_compute_instance, BOARD_COMPUTE_INSTANCES_MAX) \
        T(memory_limit, board_memory_limit, BOARD_MEMORY_LIMITS_MAX)             \
        T(offers, board_offers, BOARD_SITES_MAX)                                 \
        T(scheduler, board_scheduler, BOARD_SCHEDULER_SLOTS)                     \
        T(type, board_type, BOARD_TYPES_MAX)                                     \
        T(type_text, board_type_text, BOARD_TYPES_MAX)                           \
        T(placements, board_placements, BOARD_TYPES_MAX)                         \
        T(instance, board_instance, BOARD_INSTANCES_MAX)                         \
        T(vm, board_vm, BOARD_INSTANCES_MAX)                                     \
        T(process, board_process, BOARD_PROCESSES_MAX)                           \
        T(encoder_session, board_encoder_session, BOARD_ENCODER_SESSIONS_MAX)    \
        T(capture_session, board_capture_session, BOARD_CAPTURE_SESSIONS_MAX)

/*
 * The rings: R(noun, struct, slots, length). A ring belongs to the slot of an instance, of a
 * process, of a scheduler or of a device. Its records are numbered from 0 for ever; the last
 * @length can be read.
 */
#define BOARD_RINGS(R)                                                          \
        R(turn, board_turn, BOARD_SCHEDULER_SLOTS, BOARD_SCHEDULER_LOG)         \
        R(sample, board_sample, BOARD_INSTANCES_MAX, BOARD_SAMPLES_MAX)         \
        R(process_sample, board_sample, BOARD_PROCESSES_MAX, BOARD_SAMPLES_MAX) \
        R(account, board_account, BOARD_INSTANCES_MAX, BOARD_ACCOUNTS_MAX)      \
        R(event, board_event, BOARD_DEVICES_MAX, BOARD_EVENTS_MAX)              \
        R(device_sample, board_sample, BOARD_DEVICES_MAX, BOARD_SAMPLES_MAX)

struct board_head {
        _Atomic uint32_t sequence; /* odd: the first is being written, the second is whole */
        _Atomic uint32_t in_use;   /* a bit for each of the two */
};

/* The file is sparse: readers must not look beyond @end of a table and @count of a ring. */
struct board {
        uint32_t magic;
        uint32_t version;
        uint64_t size; /* of the file */
        uint32_t simulated;
        _Atomic uint32_t closed; /* the manager ended in good order */
        _Atomic uint64_t generation;
        _Atomic uint64_t heartbeat_ns;
        char driver_name[BOARD_NAME_MAX]; /* "580.159.04"; on the simulator ours */
        char real_nvml[256];              /* NVIDIA's library to forward to, or "" */
        _Atomic uint32_t n_devices;       /* records in use are not contiguous, except devices */
        _Atomic uint32_t n_dropped;       /* records that the file's disk had no room for */
        uint32_t reserved[14];

        struct { /* no slot from here on was ever in use */
#define BOARD_TABLE(noun, type, slots) _Atomic uint32_t noun;
                BOARD_TABLES(BOARD_TABLE)
#undef BOARD_TABLE
        } end;
        struct { /* how many were ever written */
#define BOARD_RING(noun, type, slots, length) _Atomic uint64_t noun[slots];
                BOARD_RINGS(BOARD_RING)
#undef BOARD_RING
        } count;

#define BOARD_TABLE(noun, type, slots)  \
        struct board_##noun##_record {  \
                struct board_head head; \
                struct type value[2];   \
        } noun[slots];
        BOARD_TABLES(BOARD_TABLE)
#undef BOARD_TABLE

#define BOARD_RING(noun, type, slots, length) \
        struct board_##noun##_entry {         \
                struct board_head head;       \
                struct {                      \
                        uint64_t number;      \
                        struct type value;    \
                } copy[2];                    \
        } noun[slots][length];
        BOARD_RINGS(BOARD_RING)
#undef BOARD_RING
};

static inline uint32_t board_site_of_device(uint32_t device)
{
        return device;
}

static inline uint32_t board_site_of_gpu_instance(uint32_t slot)
{
        return BOARD_DEVICES_MAX + slot;
}

static inline uint32_t board_slot_of_scheduler(uint32_t site, uint32_t engine)
{
        return site * BOARD_ENGINES + engine - BOARD_ENGINE_GRAPHICS;
}

static inline uint32_t board_slot_of_profile(uint32_t device, uint32_t profile)
{
        return device * BOARD_PROFILES_MAX + profile;
}

/*
 * Tables. For each noun:
 *
 *     uint32_t board_end_NOUN(board)                 no slot from here on was ever in use; never
 *                                                    more than there are
 *     bool board_read_NOUN(board, slot, ret_value)   false: not in use, or no such slot; @ret_value
 *                                                    has no meaning then
 *     void board_write_NOUN(board, slot, value)      NULL takes the record out of use
 *
 * Readers never block, whatever the writer does. There is one writer: one thread of the
 * manager. A record that is used for the first time needs room on the disk of the file
 * (the run directory); without it nothing is written, and n_dropped counts it.
 */
#define BOARD_TABLE(noun, type, slots)                                                            \
        uint32_t board_end_##noun(const struct board *board);                                     \
        bool board_read_##noun(const struct board *board, uint32_t slot, struct type *ret_value); \
        void board_write_##noun(struct board *board, uint32_t slot, const struct type *value);
BOARD_TABLES(BOARD_TABLE)
#undef BOARD_TABLE

/*
 * Rings. For each noun:
 *
 *     uint64_t board_count_NOUN(board, slot)                   the next number to be written
 *     uint64_t board_first_NOUN(board, slot)                   the oldest that can be read
 *     bool board_read_NOUN(board, slot, number, ret_value)     false: overwritten or taken out
 *     uint64_t board_append_NOUN(board, slot, value)           returns its number; BOARD_NO_NUMBER
 *     void board_write_NOUN(board, slot, number, value)        anew; NULL takes it out. Nothing
 *                                                              happens when it was overwritten.
 */
#define BOARD_RING(noun, type, slots, length)                                             \
        uint64_t board_count_##noun(const struct board *board, uint32_t slot);            \
        uint64_t board_first_##noun(const struct board *board, uint32_t slot);            \
        bool board_read_##noun(const struct board *board, uint32_t slot, uint64_t number, \
                               struct type *ret_value);                                   \
        uint64_t board_append_##noun(struct board *board, uint32_t slot,                  \
                                     const struct type *value);                           \
        void board_write_##noun(struct board *board, uint32_t slot, uint64_t number,      \
                                const struct type *value);
BOARD_RINGS(BOARD_RING)
#undef BOARD_RING

/*
 * The table of types is a hash table by id, to which is only added. board_find_type() sets
 * @ret_slot, at which there are its texts and placements too. board_add_type() returns the slot
 * that the type has or gets; -ENOSPC.
 */
bool board_find_type(const struct board *board, uint32_t id, uint32_t *ret_slot);
int board_add_type(struct board *board, const struct board_type *type);

/*
 * board_create() - make a new board at @path (written beside it, renamed over it) and map it.
 * Writable by the manager's user, readable by everyone, or by @group alone. board_close() marks it
 * closed and unmaps. Errors: -ENOSPC; -EPERM, no group of ours; those of open() and rename().
 */
int board_create(struct board **ret_board, const char *path, const gid_t *group);
void board_close(struct board *board);

/*
 * board_map() - map the board at @path for reading. Errors: -ENOENT (no manager has run),
 * -EPROTO (not a board), -EPROTONOSUPPORT (another version). board_unmap() takes NULL.
 */
int board_map(const struct board **ret_board, const char *path);
int board_map_fd(const struct board **ret_board,
                 int fd); /* of an open file, which stays the caller's */
void board_unmap(const struct board *board);

#endif
