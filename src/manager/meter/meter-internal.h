/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_METER_INTERNAL_H
#define MANAGER_METER_INTERNAL_H

/*
 * The parts of the meter: where numbers come from (source), what is made of them (settle), who they are
 * of (life), and where they go (state page, books).
 */

#include <systemd/sd-event.h>

#include "daemon/pace.h"
#include "ledger/ledger-thread.h"
#include "manager/model/meter-record.h"
#include "meter/allowance.h"
#include "meter/wall.h"

struct device;
struct guest;
struct instance;
struct manager;
struct meter_outside;
struct meter_source;
struct observer;

struct meter {
        struct manager *manager;
        sd_event_source *timer;
        struct pace pace;
        bool has_news;     /* since the last batch for the ledger: work, or who came or went */
        bool has_newcomer; /* a vGPU that came after the others were settled last */
        struct meter_source *source; /* NULL: there is none */
        struct meter_outside *outside;
        struct ledger_thread *ledger;
        struct allowance allowance, vgpu_allowance; /* of rows for processes, for vGPUs */
        struct ledger_device *devices;
        struct wall wall;
        struct wall_stamps stamps; /* of the samples on the state page */
        uint64_t sampled_ns;       /* the last sample */
        uint64_t written_ns;       /* the last batch for the ledger */
        uint64_t last_serial;
        struct ledger_process *former; /* that ran when the former manager wrote last, */
        size_t n_former;
        struct ledger_process *former_parts; /* and what they had of each of several devices */
        size_t n_former_parts;
        struct ledger *loading;  /* until the thread has it */
        struct wall former_wall; /* of the former manager's last write, */
        bool is_former_boot;     /* which was before the machine was started anew */
};

/* meter_has() - is the process metered, does it run? */
bool meter_has(const struct guest *guest);

/* meter_get_record() - what the accounting of a part says of @guest. */
struct accounting_record meter_get_record(const struct guest *guest, size_t part);

/* meter_read_wall() - note both clocks; to be called before something is settled. */
void meter_read_wall(struct meter *meter, uint64_t now_ns);

/* meter_note_devices() - from now on @instance uses those that it is on. */
void meter_note_devices(struct instance *instance);

/* meter_settle() - all of @instance until @now_ns; meter_settle_all() - of all, until now. */
void meter_settle(struct meter *meter, struct instance *instance, uint64_t now_ns);
uint64_t meter_settle_all(struct meter *meter);

/* meter_get_former_ns() - CLOCK_MONOTONIC of the former manager's last write; 0: none in this boot. */
uint64_t meter_get_former_ns(const struct meter *meter);

#define METER_BUSY_US 250000 /* between samples while there is work */

/* meter_arm() - sample after @in_us; meter_wake() - soon, and not what was before. */
void meter_arm(struct meter *meter, uint64_t in_us, uint64_t accuracy_us);
void meter_wake(struct meter *meter);

/* The life of vGPUs and of processes in them; userdata is the meter. */
extern struct observer meter_observer;

/* The source: adds what it sees to new_ns (or weight_ns, of GPU time on a device that has turns). */
int meter_source_new(struct meter_source **ret_source, struct manager *manager);
struct meter_source *meter_source_free(struct meter_source *source);
void meter_source_read(struct meter_source *source, struct guest *guest);
enum meter_source_kind meter_source_get_kind(const struct meter_source *source,
                                             const struct device *device);

/* meter_source_tick() - with each sample, while there are vGPUs. meter_source_stop() - there are none. */
void meter_source_tick(struct meter_source *source, struct meter_outside *outside);
void meter_source_stop(struct meter_source *source);

/* meter_source_begin() - @guest is new: what it did before is not to be counted. */
void meter_source_begin(struct meter_source *source, struct guest *guest);

/* meter_source_load() - a former manager has counted @former of it, and by device what @parts say. */
void meter_source_load(struct meter_source *source, struct guest *guest,
                       const struct ledger_process *former, const struct ledger_process *parts,
                       size_t n_parts);

/* meter_add_use() - @engine ran for @guest on the device of part @part for @ns, as seen from below. */
void meter_add_use(struct guest *guest, size_t part, enum meter_engine engine, uint64_t ns);

/* The state page: samples, and the accounts. */
void meter_page_sample(struct instance *instance, uint64_t at_us);
void meter_page_update(struct instance *instance);

/* meter_page_start(), meter_page_end() - as accounting_start() and accounting_end(), in each part. */
int meter_page_start(struct guest *guest);
void meter_page_end(struct guest *guest);

/* The books: rows for the ledger. */
int meter_books_open(struct meter *meter);
void meter_books_load(struct meter *meter, struct instance *instance);

/* meter_books_know() - is what @instance used up to the former manager's last write in the ledger? */
bool meter_books_know(struct meter *meter, const struct instance *instance);
bool meter_books_take(struct meter *meter, const struct guest *guest,
                      struct ledger_process *ret_process);

/* meter_books_take_parts() - of the process @serial by device; returns how many, at most STATE_DEVICES_MAX. */
size_t meter_books_take_parts(struct meter *meter, uint64_t serial,
                              struct ledger_process *ret_parts);
int meter_books_start(struct meter *meter);
void meter_books_add_vgpu(struct meter *meter, const struct instance *instance);

/* meter_books_remove_vgpu() - after all its usage was added. */
void meter_books_remove_vgpu(struct meter *meter, const struct instance *instance);
void meter_books_add_process(struct meter *meter, struct guest *guest, uint64_t ended_ms);
void meter_books_add_usage(struct meter *meter, const struct usage_key *key,
                           const struct usage_amount *amount, uint64_t from_ns, uint64_t to_ns);
void meter_books_clear(struct meter *meter, const struct instance *instance);

/* meter_books_settled() - all is entered that was used up to the wall that was read last. */
void meter_books_settled(struct meter *meter);

/* meter_books_write() - hand over what has come together. */
void meter_books_write(struct meter *meter);

#endif
