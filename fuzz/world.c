/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/world.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/cuda.h"
#include "base/packet.h"
#include "base/size.h"
#include "daemon/child.h"
#include "daemon/log.h"
#include "helper/keeper.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance-life.h"
#include "manager/model/restore-room.h"
#include "manager/operation/handover.h"
#include "manager/startup.h"
#include "wire/gate.h"
#include "wire/mover.h"

#define ALLOCATIONS     3
#define ALLOCATION_SIZE (2 * MIB)
#define ADDRESS         ((uint64_t)0x700000000000)

/* What one input can set going comes to rest in fewer; and in less time when a process has to die. */
#define ROUNDS_MAX 2000
#define PATIENCE   1000 /* of 10 ms */

struct world world = { .guest = { { .fd = -1 }, { .fd = -1 } },
                       .mover = { { -1, -1, 0 }, { -1, -1, 0 } },
                       .sampler = -1 };

static const char probe_script[] =
        "#!/bin/sh\n"
        "[ \"$1\" = --probe ] || exit 1\n"
        "printf 'GPU-00000000-0000-0000-0000-000000000001\\t0000:01:00.0\\t1073741824\\t13000\\tA\\n'\n"
        "printf 'GPU-00000000-0000-0000-0000-000000000002\\t0000:02:00.0\\t1073741824\\t13000\\tB\\n'\n";

/* What the manager calls instead. */

int __real_child_spawn(pid_t *ret_pid, const char *const *arguments, const char *driver_path,
                       int fd, int child_fd);
int __wrap_child_spawn(pid_t *ret_pid, const char *const *arguments, const char *driver_path,
                       int fd, int child_fd);
int __real_kill(pid_t pid, int signal);
int __wrap_kill(pid_t pid, int signal);
int __real_getsockopt(int fd, int level, int option, void *value, socklen_t *size);
int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *size);
int __wrap_sd_event_source_set_ratelimit(sd_event_source *source, uint64_t interval,
                                         unsigned int burst);

/* A process that does nothing, and ends when the other end of its input is closed. */
static int start_process(pid_t *ret_pid, int *ret_life)
{
        static const char *const arguments[] = { "/bin/cat", NULL };
        int ends[2], r;

        assert(pipe2(ends, O_CLOEXEC) == 0);
        r = __real_child_spawn(ret_pid, arguments, NULL, ends[0], STDIN_FILENO);
        close(ends[0]);
        if (r < 0)
                close(ends[1]);
        else
                *ret_life = ends[1];
        return r;
}

/* Our end of what the manager will take for its child. */
static int take_over(int *fd, int *life, pid_t *ret_pid, int socket)
{
        *fd = fcntl(socket, F_DUPFD_CLOEXEC, 3);
        assert(*fd >= 0 && fcntl(*fd, F_SETFL, O_NONBLOCK) == 0);
        return start_process(ret_pid, life);
}

static int start_mover(size_t device, pid_t *ret_pid, int socket)
{
        int r;

        world_end_mover(device);
        r = take_over(&world.mover[device].fd, &world.mover[device].life, ret_pid, socket);
        world.mover[device].pid = *ret_pid;
        return r;
}

static int print_probe(pid_t *ret_pid, int fd)
{
        static const char *const arguments[] = { "/bin/true", NULL };

        (void)!write(fd, world.probe, world.probe_size);
        return __real_child_spawn(ret_pid, arguments, NULL, STDERR_FILENO, STDERR_FILENO);
}

int __wrap_child_spawn(pid_t *ret_pid, const char *const *arguments, const char *driver_path,
                       int fd, int child_fd)
{
        if (world.probe)
                return print_probe(ret_pid, fd);
        if (strstr(arguments[0], PATHS_SAMPLER)) {
                world_end_sampler();
                return take_over(&world.sampler, &world.sampler_life, ret_pid, fd);
        }
        for (size_t i = 0; world.manager && i < world.manager->n_devices; i++)
                if (strcmp(arguments[1], world.manager->device[i].uuid) == 0)
                        return start_mover(i, ret_pid, fd);
        return __real_child_spawn(ret_pid, arguments, driver_path, fd, child_fd);
}

int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *size)
{
        if (level != SOL_SOCKET || option != SO_PEERCRED || world.peer.pid == 0)
                return __real_getsockopt(fd, level, option, value, size);
        memcpy(value, &world.peer, sizeof(world.peer));
        return 0;
}

/* A process may take its time to end. */
int __wrap_kill(pid_t pid, int signal)
{
        for (size_t i = 0; i < WORLD_DEVICES; i++)
                if (world.do_movers_linger && pid == world.mover[i].pid)
                        return 0;
        return __real_kill(pid, signal);
}

/* Inputs come faster than any user. */
int __wrap_sd_event_source_set_ratelimit(sd_event_source *source, uint64_t interval,
                                         unsigned int burst)
{
        (void)source, (void)interval, (void)burst;
        return 0;
}

/* Setting up. */

static void write_file(const char *name, const char *text, mode_t mode)
{
        char path[PATHS_MAX];
        int fd;

        assert(paths_join(path, world.directory, name) == 0);
        fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, mode);
        assert(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
        close(fd);
}

static void write_programs(void)
{
        char path[PATHS_MAX];

        write_file(PATHS_MOVER, probe_script, 0755);
        assert(paths_join(path, world.directory, PATHS_KEEPER) == 0);
        assert(symlink(FUZZ_KEEPER, path) == 0);
        assert(paths_join(path, world.directory, "gate") == 0 && mkdir(path, 0755) == 0);
        write_file(PATHS_GATE, "", 0644); /* PrepareRun looks for it */
}

/* The manager ends in good order. A keeper outlives it; this one would for ever. */
static void remove_all(void)
{
        char command[128];
        pid_t keeper = world.manager ? keeper_get_pid(world.manager->keeper) : 0;

        world.manager = manager_free(world.manager);
        if (keeper > 0)
                kill(keeper, SIGKILL);
        snprintf(command, sizeof(command), "rm -rf %s", world.directory);
        (void)!system(command);
}

static void start_manager(void)
{
        struct failure failure = { 0 };
        int r = manager_new(&world.manager, &world.options, &failure);

        if (r < 0)
                fprintf(stderr, "%s\n", failure.message);
        assert(r == 0);
        manager_serve(world.manager);
}

void world_set_up(void)
{
        snprintf(world.directory, sizeof(world.directory), "%s/vgfuzz-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        assert(mkdtemp(world.directory));
        atexit(remove_all);
        snprintf(world.options.run_directory, PATHS_MAX, "%s/run", world.directory);
        snprintf(world.options.state_directory, PATHS_MAX, "%s/state", world.directory);
        snprintf(world.options.private_directory, PATHS_MAX, "%s", world.directory);
        strcpy(world.options.driver_path, "/nonexistent");
        world.options.pool_limit = 64 * MIB;
        world.options.slab_size = 4 * MIB;
        write_programs();
        log_init(LOG_LEVEL_ERROR, false);
        start_manager();
        world.memory = memfd_create("fuzz", MFD_CLOEXEC);
        assert(ftruncate(world.memory, ALLOCATION_SIZE) == 0);
}

/* Guests. */

pid_t world_process(struct world_guest *guest)
{
        if (!guest->pid)
                assert(start_process(&guest->pid, &guest->life) == 0);
        return guest->pid;
}

void world_leave(struct world_guest *guest)
{
        if (guest->fd >= 0)
                close(guest->fd);
        guest->fd = -1;
}

void world_kill(struct world_guest *guest)
{
        world_leave(guest);
        if (!guest->pid)
                return;
        close(guest->life);
        kill(guest->pid, SIGKILL);
        waitpid(guest->pid, NULL, 0);
        guest->pid = 0;
        guest->is_stopped = false;
}

void world_stop(struct world_guest *guest)
{
        guest->is_stopped = guest->pid && kill(guest->pid, SIGSTOP) == 0;
}

void world_continue(struct world_guest *guest)
{
        if (guest->is_stopped)
                kill(guest->pid, SIGCONT);
        guest->is_stopped = false;
}

int world_connect(const char *name, int type, const struct ucred *peer)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        snprintf(address.sun_path, sizeof(address.sun_path), "%s/run/%s", world.directory, name);
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
                close(fd);
                return -1;
        }
        world.peer = *peer;
        world_run();
        world.peer = (struct ucred){ 0 };
        return fd;
}

void world_join(struct world_guest *guest, const char *vgpu)
{
        const struct ucred peer = { world_process(guest), geteuid(), getegid() };
        struct gate_join join = { { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_JOIN },
                                  .state = guest->state };

        if (guest->fd >= 0)
                close(guest->fd);
        else if (guest->state == GATE_STATE_OPEN)
                guest->has = (1u << ALLOCATIONS) - 1;
        snprintf(join.vgpu, sizeof(join.vgpu), "%s", vgpu);
        guest->fd = world_connect(PATHS_GATE_SOCKET, SOCK_SEQPACKET, &peer);
        if (guest->fd >= 0)
                (void)packet_send(guest->fd, &join, sizeof(join), NULL, 0);
        world_run();
}

static void send_allocations(const struct world_guest *guest, uint32_t which)
{
        struct gate_allocations message = {
                .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_ALLOCATIONS },
                .flags = GATE_BATCH_PLAIN,
        };
        int fds[ALLOCATIONS];

        for (uint32_t i = 0; i < ALLOCATIONS; i++)
                if (which & 1u << i) {
                        fds[message.count] = world.memory;
                        message.allocation[message.count++] =
                                (struct gate_allocation){ ADDRESS + i * ALLOCATION_SIZE,
                                                          ALLOCATION_SIZE };
                }
        if (message.count > 0)
                (void)packet_send(guest->fd, &message, sizeof(message), fds, message.count);
}

static void send_result(const struct world_guest *guest, enum gate_message answer, int error)
{
        const struct gate_result message = {
                .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, answer },
                .error = error,
                .driver_code = error == ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS,
                .bytes = (uint64_t)__builtin_popcount(guest->has) * ALLOCATION_SIZE,
                .state = guest->state,
        };

        (void)packet_send(guest->fd, &message, sizeof(message), NULL, 0);
}

static void send_closed(struct world_guest *guest, int error)
{
        const struct gate_closed message = {
                .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_CLOSED },
                .error = error,
                .movable_bytes = ALLOCATIONS * ALLOCATION_SIZE,
                .n_allocations = ALLOCATIONS,
                .can_step = 1,
                .n_launches = 1,
        };

        if (!error)
                guest->state = GATE_STATE_CLOSED;
        (void)packet_send(guest->fd, &message, sizeof(message), NULL, 0);
}

static uint32_t get_range(const struct gate_command *command)
{
        uint32_t which = 0;

        for (uint32_t i = 0; i < ALLOCATIONS; i++) {
                uint64_t address = ADDRESS + i * ALLOCATION_SIZE;

                if (address >= command->range.from && address < command->range.to)
                        which |= 1u << i;
        }
        return which;
}

static void set_state(struct world_guest *guest)
{
        guest->state =
                guest->has == (1u << ALLOCATIONS) - 1 ? GATE_STATE_CLOSED : GATE_STATE_RELEASED;
}

/* True: that was the last batch. */
static bool map(struct world_guest *guest, const struct gate_allocations *batch)
{
        for (uint32_t i = 0; i < batch->count; i++)
                guest->has |= 1u << (batch->allocation[i].address - ADDRESS) / ALLOCATION_SIZE;
        return batch->flags & GATE_BATCH_LAST;
}

static void create(struct world_guest *guest, uint32_t which)
{
        const uint32_t made = which & ~guest->has;

        guest->has |= made;
        set_state(guest);
        send_allocations(guest, made);
        send_result(guest, GATE_CREATED, 0);
}

/* True: it has answered that there is no memory. */
static bool refuse_memory(const struct world_guest *guest, uint16_t message)
{
        if (message == GATE_MAP && world.do_maps_fail) {
                send_result(guest, GATE_MAPPED, EIO);
        } else if (message == GATE_CREATE && world.n_full_creates > 0) {
                world.n_full_creates--;
                send_result(guest, GATE_CREATED, ENOMEM);
        } else {
                return false;
        }
        return true;
}

static void answer_as_guest(struct world_guest *guest, const struct gate_command *command)
{
        static const uint16_t answers[] = { [GATE_EXPORT] = GATE_EXPORTED,
                                            [GATE_RELEASE] = GATE_RELEASED,
                                            [GATE_MAP] = GATE_MAPPED,
                                            [GATE_OPEN] = GATE_OPENED,
                                            [GATE_CREATE] = GATE_CREATED };
        const uint16_t message = command->header.message;
        const bool is_closing = message == GATE_CLOSE || message == GATE_STEP;
        const int error = is_closing || (message > GATE_CLOSE && message <= GATE_CREATE)
                                  ? world.guest_error
                                  : 0;

        if (refuse_memory(guest, message))
                return;
        if (error)
                world.guest_error = 0;
        if (is_closing)
                send_closed(guest, error);
        else if (error)
                send_result(guest, answers[message], error);
        else if (message == GATE_EXPORT)
                send_allocations(guest, guest->has);
        else if (message == GATE_CREATE)
                create(guest, get_range(command));
        else if (message == GATE_RELEASE)
                guest->has &= ~get_range(command), guest->state = GATE_STATE_RELEASED;
        else if (message == GATE_OPEN)
                guest->state = GATE_STATE_OPEN;
        else if (message == GATE_MAP && map(guest, (const void *)command))
                set_state(guest);
        else
                return;
        if (!error && !is_closing && message != GATE_CREATE)
                send_result(guest, answers[message], 0);
}

static bool answer_guest(struct world_guest *guest)
{
        union {
                struct gate_command command;
                char bytes[PACKET_SIZE_MAX];
        } packet;
        int fds[PACKET_FDS_MAX];
        size_t size, n_fds;
        int r;

        if (guest->fd < 0 || world.are_guests_silent || guest->is_stopped)
                return false;
        r = packet_receive(guest->fd, &packet, &size, fds, &n_fds);
        if (r == -EAGAIN)
                return false;
        if (r < 0) {
                world_leave(guest); /* it was hung up */
                return true;
        }
        packet_close_fds(fds, n_fds);
        answer_as_guest(guest, &packet.command);
        return true;
}

/* Movers. */

void world_end_mover(size_t device)
{
        siginfo_t info;

        world_hang_up_mover(device);
        if (world.mover[device].life < 0)
                return;
        close(world.mover[device].life);
        world.mover[device].life = -1;
        /* The manager shall see its end now, and reap it. */
        (void)waitid(P_PID, (id_t)world.mover[device].pid, &info, WEXITED | WNOWAIT);
}

void world_hang_up_mover(size_t device)
{
        if (world.mover[device].fd >= 0)
                close(world.mover[device].fd);
        world.mover[device].fd = -1;
}

void world_end_sampler(void)
{
        if (world.sampler < 0)
                return;
        close(world.sampler);
        close(world.sampler_life);
        world.sampler = -1;
}

/* After every turn of the loop: what a restore may take is promised to its process. */
static void check_rooms(void)
{
        const struct instance *instance;
        const struct guest *guest;

        for (size_t i = 0; i < world.manager->n_devices; i++)
                assert(room_is_valid(&world.manager->device[i].room));
        list_for_each(instance, &world.manager->instances, link)
                list_for_each(guest, &instance->guests, link)
                        assert(restore_room_is_valid(guest) && handover_is_valid(guest) &&
                               guest_is_valid(guest));
}

void world_restart(void)
{
        world.manager = manager_free(world.manager);
        for (size_t i = 0; i < WORLD_GUESTS; i++)
                world_leave(&world.guest[i]);
        for (size_t i = 0; i < WORLD_DEVICES; i++) {
                world_end_mover(i);
                if (world.mover[i].pid)
                        (void)waitpid(world.mover[i].pid, NULL, 0);
        }
        start_manager();
        check_rooms();
        world_run();
}

static void send_info(int fd, const struct mover_header *request)
{
        struct mover_info info = { .header = *request,
                                   .memory_total = GIB,
                                   .memory_free = GIB,
                                   .has_context = 1,
                                   .driver_version = 13000 };

        info.header.message = MOVER_INFO_IS;
        (void)packet_send(fd, &info, sizeof(info), NULL, 0);
}

static int state_after(const struct mover_checkpoint *request)
{
        return request->action == MOVER_CHECKPOINT_SUSPEND ? CU_PROCESS_STATE_CHECKPOINTED
                                                           : CU_PROCESS_STATE_RUNNING;
}

static void answer_as_mover(size_t device, const struct mover_header *request)
{
        const int fd = world.mover[device].fd;
        struct mover_done done = { .header = *request, .process_state = -1 };

        if (request->id && world.answer_request && world.answer_request(device, request))
                return;
        if (request->message == MOVER_INFO) {
                send_info(fd, request);
                return;
        }
        if (request->id == 0)
                return; /* it has no answer */
        done.header.message = MOVER_DONE;
        if (request->message == MOVER_CHECKPOINT)
                done.process_state =
                        state_after((const struct mover_checkpoint *)(const void *)request);
        if (world.mover_error)
                done.error = world.mover_error;
        world.mover_error = 0;
        (void)packet_send(fd, &done, sizeof(done), NULL, 0);
}

static bool answer_mover(size_t device)
{
        union {
                struct mover_header header;
                char bytes[PACKET_SIZE_MAX];
        } packet;
        int fds[PACKET_FDS_MAX];
        size_t size, n_fds;

        if (world.mover[device].fd < 0 || world.are_movers_silent ||
            packet_receive(world.mover[device].fd, &packet, &size, fds, &n_fds) < 0)
                return false;
        packet_close_fds(fds, n_fds);
        if (size > 0)
                answer_as_mover(device, &packet.header);
        else
                world_end_mover(device);
        return true;
}

/* All together. */

static bool answer_all(void)
{
        bool has_answered = false;

        for (size_t i = 0; i < WORLD_GUESTS; i++)
                has_answered |= answer_guest(&world.guest[i]);
        for (size_t i = 0; i < WORLD_DEVICES; i++)
                has_answered |= answer_mover(i);
        return has_answered;
}

static bool run_once(uint64_t wait_us)
{
        bool has_run = sd_event_run(world.manager->event, wait_us) > 0;

        check_rooms();
        return answer_all() || has_run;
}

void world_run(void)
{
        /* Twice nothing: the fuzzer's alarm clock interrupts the manager's wait. */
        for (int i = 0, n_idle = 0; i < ROUNDS_MAX && n_idle < 2; i++)
                n_idle = run_once(0) ? 0 : n_idle + 1;
}

void world_wait(bool (*is_done)(void))
{
        for (int i = 0; i < PATIENCE && !is_done(); i++)
                (void)run_once(10000);
        assert(is_done());
}

static bool is_at_rest(void)
{
        const struct instance *instance;

        list_for_each(instance, &world.manager->instances, link)
                if (instance->operation || !list_is_empty(&instance->guests))
                        return false;
        return true;
}

void world_reset(void)
{
        world.are_guests_silent = world.are_movers_silent = false;
        world.guest_error = world.mover_error = 0;
        for (size_t i = 0; i < WORLD_GUESTS; i++) {
                world_kill(&world.guest[i]);
                world.guest[i].state = GATE_STATE_OPEN;
        }
        world_run();
        world_wait(is_at_rest);
}

static bool is_nobody_there(void)
{
        const struct instance *instance;

        list_for_each(instance, &world.manager->instances, link)
                if (instance->image || instance->operation)
                        return false;
        return true;
}

void world_clear(void)
{
        struct instance *instance, *after;
        struct failure failure = { 0 };
        struct pool_info info;

        world_wait(is_nobody_there);
        list_for_each_safe(instance, after, &world.manager->instances, link) {
                int r = instance_remove(instance, &failure);

                if (r < 0)
                        fprintf(stderr, "%s\n", failure.message);
                assert(r == 0);
        }
        world_run();
        pool_get_info(world.manager->pool, &info);
        assert(info.used == 0);
        for (size_t i = 0; i < world.manager->n_devices; i++) {
                assert(room_owed(&world.manager->device[i].room) == 0);
                world.manager->device[i].rest_until_us = 0;
        }
}
