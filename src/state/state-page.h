/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STATE_BOARD_H
#define STATE_BOARD_H

/*
 * The state page (in the code: the state page): the manager's published state, one file in the run
 * directory that any process may map read-only. One writer, any number of readers, no locks.
 *
 * Each record has two copies and a sequence counter. Each write changes the counter, which says
 * which of the two copies is not being written. A reader takes this copy if the counter was the
 * same before and after (state_read_device() and the others do this). Nobody therefore waits for a
 * manager that is stopped or dies in the middle of a record: a reader gets the former contents.
 * @generation counts changes of the whole page.
 *
 * A new manager makes a new file and renames it over the old one. A reader opens the file again
 * when it finds @closed set or @heartbeat_ns (CLOCK_MONOTONIC) older than STATE_STALE_NS.
 *
 * The file is sparse. Its size is that of all possible records, some GiB. It takes memory and disk
 * only for records that were ever used, some tens of KiB for each vGPU and process.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "state/device.h"
#include "state/instance.h"
#include "state/monitor.h"
#include "state/type.h"
#include "state/usage.h"

#define STATE_MAGIC   0x44524f42u /* "BORD" */
#define STATE_VERSION 13u

#define STATE_STALE_NS 3000000000ull

/* Of a record that could not be appended. */
#define STATE_NO_NUMBER UINT64_MAX

/*
 * The tables: T(noun, struct, slots). The slots of a table, and how to find one:
 *
 *     host                                0
 *     device, device_detail, sensors,     the device's index
 *     features, links
 *     profile                             state_slot_of_profile()
 *     gpu_instance, compute_instance,     any; read them all
 *     memory_limit
 *     offers                              a site: state_site_of_device(), .._of_gpu_instance()
 *     scheduler                           state_slot_of_scheduler()
 *     type, type_text, placements         state_find_type()
 *     instance, vm                        any, and the same while the instance lives
 *     process, encoder_session,           any; read them all
 *     capture_session
 *     manager                             0
 *     operation                           any; read them all
 *     device_use                          the device's index
 *     vgpu                                that of the instance, of its first device
 *     vgpu_part                           that of the instance
 *     process_use                         that of the process, of its first device
 */
#define STATE_PROFILE_SLOTS   (STATE_DEVICES_MAX * STATE_PROFILES_MAX)
#define STATE_SCHEDULER_SLOTS (STATE_SITES_MAX * STATE_ENGINES)

#define STATE_TABLES(T)                                                          \
        T(host, state_host, 1)                                                   \
        T(device, state_device, STATE_DEVICES_MAX)                               \
        T(device_detail, state_device_detail, STATE_DEVICES_MAX)                 \
        T(sensors, state_sensors, STATE_DEVICES_MAX)                             \
        T(features, state_features, STATE_DEVICES_MAX)                           \
        T(links, state_links, STATE_DEVICES_MAX)                                 \
        T(profile, state_profile, STATE_PROFILE_SLOTS)                           \
        T(gpu_instance, state_gpu_instance, STATE_GPU_INSTANCES_MAX)             \
        T(compute_instance, state_compute_instance, STATE_COMPUTE_INSTANCES_MAX) \
        T(memory_limit, state_memory_limit, STATE_MEMORY_LIMITS_MAX)             \
        T(offers, state_offers, STATE_SITES_MAX)                                 \
        T(scheduler, state_scheduler, STATE_SCHEDULER_SLOTS)                     \
        T(type, state_type, STATE_TYPES_MAX)                                     \
        T(type_text, state_type_text, STATE_TYPES_MAX)                           \
        T(placements, state_placements, STATE_TYPES_MAX)                         \
        T(instance, state_instance, STATE_INSTANCES_MAX)                         \
        T(vm, state_vm, STATE_INSTANCES_MAX)                                     \
        T(process, state_process, STATE_PROCESSES_MAX)                           \
        T(encoder_session, state_encoder_session, STATE_ENCODER_SESSIONS_MAX)    \
        T(capture_session, state_capture_session, STATE_CAPTURE_SESSIONS_MAX)    \
        T(manager, state_manager, 1)                                             \
        T(operation, state_operation, STATE_OPERATIONS_MAX)                      \
        T(device_use, state_device_use, STATE_DEVICES_MAX)                       \
        T(vgpu, state_vgpu, STATE_INSTANCES_MAX)                                 \
        T(vgpu_part, state_vgpu_part, STATE_INSTANCES_MAX)                       \
        T(process_use, state_process_use, STATE_PROCESSES_MAX)

/*
 * The rings: R(noun, struct, slots, length). A ring belongs to the slot of an instance, of a
 * process, of a scheduler or of a device. Its records are numbered from 0 for ever; the last
 * @length can be read.
 */
#define STATE_RINGS(R)                                                          \
        R(turn, state_turn, STATE_SCHEDULER_SLOTS, STATE_SCHEDULER_LOG)         \
        R(sample, state_sample, STATE_INSTANCES_MAX, STATE_SAMPLES_MAX)         \
        R(process_sample, state_sample, STATE_PROCESSES_MAX, STATE_SAMPLES_MAX) \
        R(account, state_account, STATE_INSTANCES_MAX, STATE_ACCOUNTS_MAX)      \
        R(event, state_event, STATE_DEVICES_MAX, STATE_EVENTS_MAX)              \
        R(device_sample, state_sample, STATE_DEVICES_MAX, STATE_SAMPLES_MAX)

struct state_head {
        _Atomic uint32_t sequence; /* odd: the first is being written, the second is whole */
        _Atomic uint32_t in_use;   /* a bit for each of the two */
};

/* The file is sparse: readers must not look beyond @end of a table and @count of a ring. */
struct state_page {
        uint32_t magic;
        uint32_t version;
        uint64_t size; /* of the file */
        uint32_t simulated;
        _Atomic uint32_t closed; /* the manager ended in good order */
        _Atomic uint64_t generation;
        _Atomic uint64_t heartbeat_ns;
        char driver_name[STATE_NAME_MAX]; /* "580.159.04"; on the simulator ours */
        char real_nvml[256];              /* NVIDIA's library to forward to, or "" */
        _Atomic uint32_t n_devices;       /* records in use are not contiguous, except devices */
        _Atomic uint32_t n_dropped;       /* records that the file's disk had no room for */
        uint32_t reserved[14];

        struct { /* no slot from here on was ever in use */
#define STATE_TABLE(noun, type, slots) _Atomic uint32_t noun;
                STATE_TABLES(STATE_TABLE)
#undef STATE_TABLE
        } end;
        struct { /* how many were ever written */
#define STATE_RING(noun, type, slots, length) _Atomic uint64_t noun[slots];
                STATE_RINGS(STATE_RING)
#undef STATE_RING
        } count;

#define STATE_TABLE(noun, type, slots)  \
        struct state_##noun##_record {  \
                struct state_head head; \
                struct type value[2];   \
        } noun[slots];
        STATE_TABLES(STATE_TABLE)
#undef STATE_TABLE

#define STATE_RING(noun, type, slots, length) \
        struct state_##noun##_entry {         \
                struct state_head head;       \
                struct {                      \
                        uint64_t number;      \
                        struct type value;    \
                } copy[2];                    \
        } noun[slots][length];
        STATE_RINGS(STATE_RING)
#undef STATE_RING
};

static inline uint32_t state_site_of_device(uint32_t device)
{
        return device;
}

static inline uint32_t state_site_of_gpu_instance(uint32_t slot)
{
        return STATE_DEVICES_MAX + slot;
}

static inline uint32_t state_slot_of_scheduler(uint32_t site, uint32_t engine)
{
        return site * STATE_ENGINES + engine - STATE_ENGINE_GRAPHICS;
}

static inline uint32_t state_slot_of_profile(uint32_t device, uint32_t profile)
{
        return device * STATE_PROFILES_MAX + profile;
}

/*
 * Tables. For each noun:
 *
 *     uint32_t state_end_NOUN(state page)                 no slot from here on was ever in use; never
 *                                                    more than there are
 *     bool state_read_NOUN(state page, slot, ret_value)   false: not in use, or no such slot; @ret_value
 *                                                    has no meaning then
 *     void state_write_NOUN(state page, slot, value)      NULL takes the record out of use
 *
 * Readers never block, whatever the writer does. There is one writer: one thread of the
 * manager. A record that is used for the first time needs room on the disk of the file
 * (the run directory); without it nothing is written, and n_dropped counts it.
 */
#define STATE_TABLE(noun, type, slots)                                             \
        uint32_t state_end_##noun(const struct state_page *state_page);            \
        bool state_read_##noun(const struct state_page *state_page, uint32_t slot, \
                               struct type *ret_value);                            \
        void state_write_##noun(struct state_page *state_page, uint32_t slot,      \
                                const struct type *value);
STATE_TABLES(STATE_TABLE)
#undef STATE_TABLE

/*
 * Rings. For each noun:
 *
 *     uint64_t state_count_NOUN(state page, slot)                   the next number to be written
 *     uint64_t state_first_NOUN(state page, slot)                   the oldest that can be read
 *     bool state_read_NOUN(state page, slot, number, ret_value)     false: overwritten or taken out
 *     uint64_t state_append_NOUN(state page, slot, value)           returns its number; STATE_NO_NUMBER
 *     void state_write_NOUN(state page, slot, number, value)        anew; NULL takes it out. Nothing
 *                                                              happens when it was overwritten.
 */
#define STATE_RING(noun, type, slots, length)                                                  \
        uint64_t state_count_##noun(const struct state_page *state_page, uint32_t slot);       \
        uint64_t state_first_##noun(const struct state_page *state_page, uint32_t slot);       \
        bool state_read_##noun(const struct state_page *state_page, uint32_t slot,             \
                               uint64_t number, struct type *ret_value);                       \
        uint64_t state_append_##noun(struct state_page *state_page, uint32_t slot,             \
                                     const struct type *value);                                \
        void state_write_##noun(struct state_page *state_page, uint32_t slot, uint64_t number, \
                                const struct type *value);
STATE_RINGS(STATE_RING)
#undef STATE_RING

/*
 * The table of types is a hash table by id, to which is only added. state_find_type() sets
 * @ret_slot, at which there are its texts and placements too. state_add_type() returns the slot
 * that the type has or gets; -ENOSPC.
 */
bool state_find_type(const struct state_page *state_page, uint32_t id, uint32_t *ret_slot);
int state_add_type(struct state_page *state_page, const struct state_type *type);

/*
 * state_create() - make a new state page at @path (written beside it, renamed over it) and map it.
 * Writable by the manager's user, readable by everyone, or by @group alone. state_close() marks it
 * closed and unmaps. Errors: -ENOSPC; -EPERM, no group of ours; those of open() and rename().
 */
int state_create(struct state_page **ret_state_page, const char *path, const gid_t *group);
void state_close(struct state_page *state_page);

/*
 * state_map() - map the state page at @path for reading. Errors: -ENOENT (no manager has run),
 * -EPROTO (not a state page), -EPROTONOSUPPORT (another version). state_unmap() takes NULL.
 */
int state_map(const struct state_page **ret_state_page, const char *path);
int state_map_fd(const struct state_page **ret_state_page,
                 int fd); /* of an open file, which stays the caller's */
void state_unmap(const struct state_page *state_page);

#endif
