/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_FAKE_MANAGER_H
#define GATE_FAKE_MANAGER_H

/*
 * For the gate's tests: a manager of one vGPU, in the test's own process, that does what the test
 * says, and a host of simulated devices. Each test runs in a process of its own (the gate joins
 * once), as the only member of its vGPU.
 *
 * Functions that cannot fail in a correct program end the test when they do.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "state/instance-page.h"
#include "wire/gate.h"

/* fake_test() - run @body in a process of its own; to be called from a cmocka test. */
void fake_test(const char *name, void (*body)(void));

/* FAKE_TEST(sentence) - the cmocka test @sentence, which runs the body that follows. */
#define FAKE_TEST(sentence)                            \
        static void sentence##_body(void);             \
        static void sentence(void **state)             \
        {                                              \
                (void)state;                           \
                fake_test(#sentence, sentence##_body); \
        }                                              \
        static void sentence##_body(void)

/* check() - in a body: a condition that does not hold ends the process, and the test fails. */
#define check(condition)                                           \
        do {                                                       \
                if (!(condition))                                  \
                        fake_fail(__FILE__, __LINE__, #condition); \
        } while (0)
_Noreturn void fake_fail(const char *file, int line, const char *condition);

/* check_answer() - as check(), and what was answered instead is told. */
#define check_answer(call, wanted) fake_compare(__FILE__, __LINE__, #call, (call), (wanted))
void fake_compare(const char *file, int line, const char *call, CUresult result, CUresult wanted);

/* fake_context() - initialise CUDA; the primary context of device 0 is the thread's. */
CUcontext fake_context(void);

/* fake_is_simulated() - or a real device? There, calls cannot be told to fail. */
bool fake_is_simulated(void);

/* fake_host() - devices for this process, and no vGPU: the gate stands alone. */
void fake_host(const char *specification);

#define FAKE_SLOT 3 /* in the instance page */

/* fake_manager_start() - a vGPU with @quota bytes; the next cuInit() joins it. */
struct instance_page *fake_manager_start(uint64_t quota);

/* fake_manager_refuse() - the next process that joins is refused. */
void fake_manager_refuse(const char *text);

/* fake_manager_name_device() - in the next WELCOME; else it names none. */
void fake_manager_name_device(const char *uuid);

/* fake_manager_add_device() - the vGPU has a second one, with a quota of its own. Each is named. */
void fake_manager_add_device(const char *uuid, uint64_t quota);

/* fake_manager_name_other() - and behind those of the vGPU this one, of the host. */
void fake_manager_name_other(const char *uuid);

/* fake_manager_hang_up() - and be there at once for who joins again. */
void fake_manager_hang_up(void);

/* fake_manager_stop() - hang up and listen no more; fake_manager_restart() listens again. */
void fake_manager_stop(void);
void fake_manager_restart(void);

/* fake_manager_wait_for_join() - of a gate that has lost us; what it said. */
struct gate_join fake_manager_wait_for_join(void);

/* fake_manager_wait_for_seen() - the next message says which devices its driver sees; others pass over that. */
struct gate_seen fake_manager_wait_for_seen(void);

/* The steps. Each sends a message and waits for the answer. */
struct gate_closed fake_close(uint32_t timeout_ms);
struct gate_closed fake_step(uint32_t n_launches, uint32_t window_ms, uint32_t timeout_ms);
struct gate_result fake_command(enum gate_message command);
struct gate_result fake_command_range(enum gate_message command, struct gate_range range);

/* The last EXPORT or CREATE: what came with it. */
struct fake_memory {
        size_t n;
        struct gate_allocation allocation[4096];
        int fd[4096];
};
extern struct fake_memory fake_memory;
void fake_memory_drop(void); /* close the descriptors */

/* fake_map() - undo a release with the descriptors of fake_memory; fake_map_in_parts(): of so many. fake_give() - a few of them, as given. */
struct gate_result fake_map(void);
struct gate_result fake_map_in_parts(size_t most);
struct gate_result fake_give(size_t first, size_t n);

/* fake_send() - any bytes with any descriptors; fake_receive() - any message but SEEN. -errno of the socket. */
int fake_send(const void *bytes, size_t size, const int *fds, size_t n_fds);
int fake_receive(void *message, size_t *ret_size);

/*
 * fake_copy_out() - the contents of fake_memory, into host memory, as a mover does it: import, map,
 * copy, release. fake_copy_in() is the opposite.
 */
void *fake_copy_out(void);
void fake_copy_in(const void *contents);

#endif
