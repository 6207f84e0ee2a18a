/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

/*
 * The store has the facts that the next manager must know, in one SQLite database.
 *
 * Instances last until they are removed. Processes, memories, extents and
 * operations describe one boot of the machine: store_open() forgets them when it
 * finds that the machine has started anew, for the processes are gone as well.
 *
 * When a call returns, its change is on its way to the disk and survives the death of
 * this process, but perhaps not that of the machine: facts of one boot need not. After
 * store_begin_durable(), the change and all changes before it are on the disk when
 * store_commit() returns.
 *
 * Errors: -EIO, -ENOSPC, -ENOMEM; the log has SQLite's words.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "daemon/failure.h"
#include "wire/gate.h"

#define STORE_UUID_MAX  48
#define STORE_PLACE_MAX (GATE_DEVICES_MAX * STORE_UUID_MAX) /* UUIDs of devices, with commas */
#define STORE_NAME_MAX  64
#define STORE_WORD_MAX  32

struct store;

/*
 * store_open() - open or make the database at @path; @boot_id tells boots apart
 *
 * A database that is damaged, locked by another process or of a newer version is an error with a
 * reason in @failure; it is never moved away or emptied, for it may be all that knows where a
 * guest's memory is. One of an older version is brought up to date.
 */
int store_open(struct store **ret_store, const char *path, const char *boot_id,
               struct failure *failure);
struct store *store_close(struct store *store);
DEFINE_CLEANUP(struct store *, store_close);

/* Changes between begin and commit happen together, or not at all if this process dies. */
int store_begin(struct store *store);
int store_begin_durable(struct store *store);
int store_commit(struct store *store);
void store_rollback(struct store *store);

/* store_is_writable() - find out, by writing again what the store has already. */
bool store_is_writable(struct store *store);

/* What an instance has of a device beside its first. */
struct store_part {
        uint32_t id; /* no other part and no instance ever gets it */
        char device_uuid[STORE_UUID_MAX];
};

struct store_instance {
        uint32_t id; /* no other instance ever gets it */
        char name[STORE_NAME_MAX];
        char uuid[STORE_UUID_MAX];
        char device_uuid[STORE_UUID_MAX];
        uint64_t frame_buffer;
        uint64_t created_ns;
        uint32_t state; /* enum state_instance_state, a settled one */
        uid_t owner;
        bool is_transient;
        pid_t creator;                                /* of a transient instance */
        uint64_t creator_start;                       /* when that process started */
        struct store_part more[GATE_DEVICES_MAX - 1]; /* in the order of its devices */
        size_t n_more;
};

/* store_add_instance() - add @instance, and set its id and those of its parts. */
int store_add_instance(struct store *store, struct store_instance *instance);
int store_set_instance(struct store *store, uint32_t id, uint32_t state, const char *device_uuid);

/* store_set_part() - the device of a part of one, but for the first. */
int store_set_part(struct store *store, uint32_t id, const char *device_uuid);

int store_rename_instance(struct store *store, uint32_t id, const char *name);
int store_resize_instance(struct store *store, uint32_t id, uint64_t frame_buffer);

/* store_remove_instance() - remove an instance with all that belongs to it. */
int store_remove_instance(struct store *store, uint32_t id);

typedef int (*store_instance_fn)(const struct store_instance *instance, void *userdata);
int store_each_instance(struct store *store, store_instance_fn each, void *userdata);

/* A process that joined: its slot in the instance page, and how far the driver's checkpoint of it is. */
struct store_process {
        uint32_t instance;
        pid_t pid;
        uint64_t start_time;
        uint32_t slot;
        uint32_t context; /* enum guest_context */
        char context_device[STORE_PLACE_MAX];
        char context_target[STORE_PLACE_MAX];
};

int store_put_process(struct store *store, const struct store_process *process);
int store_remove_process(struct store *store, uint32_t instance, pid_t pid);

typedef int (*store_process_fn)(const struct store_process *process, void *userdata);
int store_each_process(struct store *store, uint32_t instance, store_process_fn each,
                       void *userdata);

/* The bytes that the driver keeps for the contexts of a process. store_get_footprint() - Errors: -ENOENT. */
int store_put_footprint(struct store *store, uint32_t instance, pid_t pid, uint64_t bytes);
int store_get_footprint(struct store *store, uint32_t instance, pid_t pid, uint64_t *ret_bytes);

/* A mark of the program that a process ran when it joined (process_get_program()). store_get_program() - Errors: -ENOENT. */
int store_put_program(struct store *store, uint32_t instance, pid_t pid, uint64_t mark);
int store_get_program(struct store *store, uint32_t instance, pid_t pid, uint64_t *ret_mark);

/* The movable memory of a process, and where in the slabs its bytes are, one after another. */
struct store_allocation {
        uint64_t address, size;
        uint32_t part; /* of its vGPU: on which device it is */
};

struct store_extent {
        uint32_t slab;
        uint64_t offset;
        uint64_t length;
        uint64_t generation; /* see pool.h; 0: of a release that had none */
};

struct store_memory {
        const struct store_allocation *allocations;
        size_t n_allocations;
        const struct store_extent *extents;
        size_t n_extents;
};

/* store_put_memory() - replace in one step what the store has of the process. Empty lists: forget it. */
int store_put_memory(struct store *store, uint32_t instance, pid_t pid,
                     const struct store_memory *memory);

/* store_get_memory() - get both lists, which the caller frees with free(). */
int store_get_memory(struct store *store, uint32_t instance, pid_t pid,
                     struct store_allocation **ret_allocations, size_t *ret_n_allocations,
                     struct store_extent **ret_extents, size_t *ret_n_extents);

/* The operation under way on an instance, and its last complete step. */
struct store_operation {
        uint32_t instance;
        char kind[STORE_WORD_MAX];
        char step[STORE_WORD_MAX];
        char source[STORE_PLACE_MAX];
        char target[STORE_PLACE_MAX];
        bool keep_context;
};

int store_put_operation(struct store *store, const struct store_operation *operation);
int store_remove_operation(struct store *store, uint32_t instance);

/* Errors: -ENOENT. */
int store_get_operation(struct store *store, uint32_t instance,
                        struct store_operation *ret_operation);

/*
 * Settings have names. A setting with @instance belongs to this instance and is removed with it. A setting
 * without (0) lasts until the machine starts anew. Within a transaction the change is part of it.
 */
int store_put_setting(struct store *store, const char *name, uint32_t instance, const char *value);

/*
 * store_put_driver_setting() - put a setting that the driver forgets when it is loaded again
 * @load:  identifies the present load. The store forgets what this function put with another @load
 *
 * The setting is found like one without instance, and @load under the name STORE_DRIVER_LOAD. Must not be
 * called within a transaction.
 */
#define STORE_DRIVER_LOAD "driver_load"
int store_put_driver_setting(struct store *store, const char *load, const char *name,
                             const char *value);

typedef int (*store_setting_fn)(const char *name, uint32_t instance, const char *value,
                                void *userdata);
int store_each_setting(struct store *store, store_setting_fn each, void *userdata);

/*
 * The movers that were started. One may outlive its manager by the driver call that it is in; the
 * next manager waits for that before it asks the driver how far things are.
 */
int store_put_mover(struct store *store, pid_t pid);
int store_remove_mover(struct store *store, pid_t pid);

typedef int (*store_mover_fn)(pid_t pid, uint64_t start_time, void *userdata);
int store_take_movers(struct store *store, store_mover_fn each, void *userdata);

#endif
