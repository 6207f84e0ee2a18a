/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LEDGER_TEST_FIXTURE_H
#define LEDGER_TEST_FIXTURE_H

/* A ledger in a file of its own, a batch to fill, and what the last question answered. */

#include "base/test.h"
#include "ledger/ledger-internal.h"

#define TENANT_A 1000
#define TENANT_B 1001
#define MINUTE   60000ull

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

extern const struct ledger_device ledger_devices[2];

struct fixture {
        char path[64];
        struct ledger *ledger;
        struct ledger_batch batch;
        struct ledger_row rows[16];
        struct ledger_process processes[16];
        size_t n;
};

int set_up(void **state);
int tear_down(void **state);

/* open_again() - close it, and open it as after a start of the machine called @boot. */
int open_again(struct fixture *fixture, const char *boot);

/* What the batch gets. */
void add_vgpu(struct fixture *fixture, uint64_t serial, uid_t owner, const char *name);
void add_process(struct fixture *fixture, uint64_t serial, uint64_t vgpu, uint64_t ended_ms);
void add_usage(struct fixture *fixture, uint64_t minute, uint64_t vgpu, uint64_t process,
               uint32_t device, uint64_t amount);

/* write_batch() - write it, and begin a new one. */
int write_batch(struct fixture *fixture);

/* fill() - two tenants with three vGPUs on two devices in two minutes. */
void fill(struct fixture *fixture);

/* copy_row(), copy_process() - for the questions: the answer goes behind what is there. */
int copy_row(const struct ledger_row *row, void *userdata);
int copy_process(const struct ledger_process *process, void *userdata);

/* ask() - the rows of a group. Returns how many. */
size_t ask(struct fixture *fixture, enum ledger_group group, uint64_t since, uint64_t until,
           int64_t tenant);

/* ask_all() - the sum of all. */
uint64_t ask_all(struct fixture *fixture);

#endif
