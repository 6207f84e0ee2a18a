/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/startup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "daemon/driver-path.h"
#include "daemon/foreign.h"
#include "daemon/log.h"
#include "daemon/process.h"
#include "daemon/run-lock.h"
#include "manager/control/control.h"
#include "manager/guests/guest-socket.h"
#include "manager/history/history.h"
#include "manager/image/held.h"
#include "manager/image/image.h"
#include "manager/image/pinning.h"
#include "manager/meter/meter.h"
#include "manager/methods/methods.h"
#include "manager/model/account.h"
#include "manager/model/backlog.h"
#include "manager/model/burial.h"
#include "manager/model/ceiling.h"
#include "manager/model/clean-copy.h"
#include "manager/model/device-mover.h"
#include "manager/model/device.h"
#include "manager/model/guest-life.h"
#include "manager/model/guest.h"
#include "manager/model/instance-life.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/recovery-load.h"
#include "manager/model/recovery.h"
#include "manager/model/reserve.h"
#include "manager/model/silence.h"
#include "manager/model/spilling.h"
#include "manager/operation/operation-engine.h"
#include "manager/operation/operation.h"
#include "manager/operation/read-ahead.h"
#include "manager/operation/refresh.h"
#include "manager/operation/write-ahead.h"
#include "manager/publish/publisher.h"
#include "manager/publish/virtual.h"
#include "manager/residency/residency.h"
#include "manager/schedule/schedule.h"
#include "manager/setting/settings.h"
#include "manager/simulation.h"
#include "manager/socket/fair-queue.h"
#include "manager/socket/listener.h"
#include "manager/socket/unread.h"

#define DATABASE "state.db"

/*
 * A former mover may be in a driver call; the longest, a checkpoint, takes some seconds. So long all of them are waited
 * for together, and then so long for the end of those that were killed.
 */
#define FORMER_MOVERS_MS 30000
#define KILLED_MOVERS_MS 5000

/* So long clients wait for what a former manager left to be in order: less than they wait for an operation (10 s). */
#define PATIENCE_MS 5000

/* Surroundings: directories, limits, paths. */

/* Who owns it can put anything in the place of what is in there. */
static int check_directory(const char *path, struct failure *failure)
{
        struct stat status;

        if (stat(path, &status) < 0 || !S_ISDIR(status.st_mode))
                return failure_set(failure, -ENOTDIR, "Failed", "choose another directory",
                                   "%.200s is no directory", path);
        if (status.st_uid == 0 || status.st_uid == geteuid())
                return 0;
        return failure_set(failure, -EPERM, "Failed", "choose another directory",
                           "%.200s belongs to user %u, who could change what is in it", path,
                           status.st_uid);
}

static int make_directory(const char *path, mode_t mode, struct failure *failure)
{
        char parent[PATHS_MAX];

        snprintf(parent, sizeof(parent), "%s", path);
        for (char *slash = strchr(parent + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                *slash = '\0';
                (void)mkdir(parent, 0755);
                *slash = '/';
        }
        if (mkdir(path, mode) == 0)
                return 0;
        if (errno == EEXIST)
                return check_directory(path, failure);
        return failure_set(failure, -errno, "Failed", "make it, or choose another directory",
                           "cannot make %.200s: %s", path, strerror(errno));
}

static int find_driver(struct manager *manager, struct failure *failure)
{
        const struct options *options = manager->options;

        if (options->driver_path[0])
                strcpy(manager->driver_path, options->driver_path);
        else if (driver_path_find(manager->driver_path, "libcuda.so.1",
                                  options->private_directory) < 0)
                return failure_set(failure, -ENODEV, "Failed",
                                   "install the NVIDIA driver or name it with --driver; to try "
                                   "without a GPU: vgpud --simulate 2xH200",
                                   "there is no NVIDIA driver (libcuda.so.1) on this machine");
        if (driver_path_find(manager->real_nvml, "libnvidia-ml.so.1", options->private_directory) <
            0)
                manager->real_nvml[0] = '\0';
        driver_path_get_version(manager->driver_version, sizeof(manager->driver_version));
        return 0;
}

static int set_paths(struct manager *manager, struct failure *failure)
{
        const char *private = manager->options->private_directory;
        int r = paths_join(manager->gate_path, private, PATHS_GATE);

        if (r == 0)
                r = paths_join(manager->mover_path, private, PATHS_MOVER);
        if (r == 0)
                r = paths_join(manager->nvml_path, private, PATHS_NVML);
        if (r < 0)
                return r;
        if (manager->options->scenario_path[0])
                return simulation_play(manager, failure);
        return manager->options->simulate ? simulation_start(manager, failure)
                                          : find_driver(manager, failure);
}

static int check_length(const char *run_directory, struct failure *failure)
{
        size_t max = sizeof(((struct sockaddr_un *)0)->sun_path) - sizeof("/" PATHS_CONTROL_SOCKET);

        if (strlen(run_directory) <= max)
                return 0;
        return failure_set(failure, -ENAMETOOLONG, "Failed", "choose another --run-dir",
                           "no socket can have a path as long as in %.200s: at most %zu letters",
                           run_directory, max);
}

static int set_up_surroundings(struct manager *manager, struct failure *failure)
{
        int r = check_length(manager->options->run_directory, failure);

        if (r == 0)
                r = make_directory(manager->options->run_directory, 0755, failure);
        if (r == 0)
                r = make_directory(manager->options->state_directory, 0700, failure);
        if (r == 0)
                r = run_lock_take(manager->options->run_directory, &manager->lock, failure);
        if (r == 0)
                r = listener_take_given(manager->options, failure);
        if (r < 0)
                return r;
        descriptors_make_room(); /* every exported piece of device memory is one */
        return set_paths(manager, failure);
}

/* What a former manager left. */

static int wait_for_end(int pidfd, uint64_t until_ns)
{
        struct pollfd poll_fd = { .fd = pidfd, .events = POLLIN };
        uint64_t now_ns = clock_now(CLOCK_MONOTONIC);

        return poll(&poll_fd, 1, now_ns < until_ns ? (int)((until_ns - now_ns) / 1000000) + 1 : 0);
}

static int wait_for_mover(pid_t pid, uint64_t start_time, void *userdata)
{
        const uint64_t *until_ns = userdata;
        CLEANUP(fd_closep) int pidfd = -1;

        if (process_open(pid, start_time, &pidfd) < 0 || wait_for_end(pidfd, *until_ns) > 0)
                return 0;
        log_event(LOG_LEVEL_WARNING, "killing a mover of the former manager", "pid=%d", (int)pid);
        (void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
        (void)wait_for_end(pidfd, *until_ns + KILLED_MOVERS_MS * 1000000ull);
        return 0;
}

static void read_boot_id(char *id, int size)
{
        FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

        id[0] = '\0';
        if (!file)
                return;
        if (fgets(id, size, file))
                id[strcspn(id, "\n")] = '\0';
        fclose(file);
}

static int open_store(struct manager *manager, struct failure *failure)
{
        uint64_t until_ns = clock_now(CLOCK_MONOTONIC) + FORMER_MOVERS_MS * 1000000ull;
        char path[PATHS_MAX];
        int r = paths_join(path, manager->options->state_directory, DATABASE);

        if (r < 0)
                return r;
        read_boot_id(manager->boot_id, sizeof(manager->boot_id));
        r = store_open(&manager->store, path, manager->boot_id, failure);
        if (r < 0)
                return r;
        if (store_take_movers(manager->store, wait_for_mover, &until_ns) < 0)
                log_event(LOG_LEVEL_WARNING, "movers that ended are still in the state database",
                          "device=all");
        return 0;
}

static void on_keeper_lost(struct keeper *keeper, void *userdata)
{
        int r = keeper_restore(keeper);

        (void)userdata;
        log_event(r < 0 ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING,
                  r < 0 ? "the keeper died and could not be replaced" : "the keeper was replaced",
                  "error=\"%s\"", strerror(-r));
}

static int open_keeper(struct manager *manager, struct failure *failure)
{
        char program[PATHS_MAX], socket[PATHS_MAX];
        int r = paths_join(program, manager->options->private_directory, PATHS_KEEPER);

        if (r == 0)
                r = paths_join(socket, manager->options->run_directory, PATHS_KEEPER_SOCKET);
        if (r == 0)
                r = keeper_new(&manager->keeper, manager->event, socket, program, on_keeper_lost,
                               manager);
        if (r < 0)
                return failure_set(failure, r, "Failed", "is the installation complete?",
                                   "the keeper %.200s could not be started: %s", program,
                                   strerror(-r));
        return 0;
}

static int open_pool(struct manager *manager)
{
        const struct pool_options options = {
                .limit = manager->options->pool_limit,
                .slab_size = manager->options->slab_size,
                .worker = device_work,
                .watch = held_watch,
                .userdata = manager,
        };

        int r = held_new(&manager->held, manager);

        if (r == 0)
                r = clean_copy_make_key(&manager->hash_key);
        return r < 0 ? r : pool_new(&manager->pool, &options);
}

/* The limit of descriptors is the final one by now. */
static void on_foreign(uid_t user, size_t n, void *accounts)
{
        account_set_waiting(accounts, user, n);
}

static int open_accounts(struct manager *manager)
{
        const struct account_cost capacity = accounts_get_capacity();
        int r = accounts_new(&manager->accounts, &capacity);

        if (r == 0)
                r = foreign_begin(manager->event, on_foreign, manager->accounts);
        if (r == 0)
                r = unread_new(&manager->unread, manager->event, manager->accounts);
        if (r == 0)
                r = pinning_new(&manager->pinning);
        return r == 0 ? fair_queue_new(&manager->fair_queue, manager->event) : r;
}

/* "all" means those that there are. */
static void complain_of_devices(const struct manager *manager, const char *option, uint64_t devices)
{
        for (unsigned int i = (unsigned int)manager->n_devices; devices != UINT64_MAX && i < 64;
             i++)
                if (devices >> i & 1)
                        log_event(
                                LOG_LEVEL_WARNING, "an option names a device that is not there",
                                "option=--%s device=%u devices=%zu hint=\"vgpu devices lists them\"",
                                option, i, manager->n_devices);
}

static int load(struct manager *manager, struct failure *failure)
{
        int r = open_store(manager, failure);

        if (r == 0)
                r = backlog_new(&manager->backlog, manager);
        if (r == 0)
                r = burial_new(&manager->burial, manager->event, instance_bury);
        if (r == 0)
                r = device_probe_all(manager, failure);
        if (r == 0)
                r = open_keeper(manager, failure);
        if (r == 0)
                r = open_pool(manager);
        if (r == 0)
                r = spilling_open(manager, failure);
        complain_of_devices(manager, "overcommit", manager->options->overcommit);
        complain_of_devices(manager, "pin-ahead", manager->options->pin_ahead);
        complain_of_devices(manager, "leave-out", manager->options->leave_out);
        schedule_subscribe(manager);
        operation_subscribe(manager);
        refresh_subscribe(manager);
        write_ahead_subscribe(manager);
        read_ahead_subscribe(manager);
        if (r == 0)
                r = residency_new(&manager->residency, manager);
        if (r == 0)
                r = history_new(&manager->history, manager);
        image_subscribe(manager);
        for (size_t i = 0; r == 0 && i < manager->n_devices; i++)
                r = schedule_new(&manager->device[i].schedule, &manager->device[i]);
        if (r == 0)
                r = meter_new(&manager->meter, manager);
        if (r == 0)
                r = recovery_load(manager);
        return r;
}

/* Serving. */

static int set_up_event(struct manager *manager)
{
        sigset_t signals;
        int r;

        sigemptyset(&signals);
        sigaddset(&signals, SIGTERM);
        sigaddset(&signals, SIGINT);
        sigaddset(&signals, SIGCHLD);
        sigprocmask(SIG_BLOCK, &signals, NULL);
        signal(SIGPIPE, SIG_IGN);
        signal(SIGXFSZ, SIG_IGN); /* a file that must not grow is an error of its write */
        r = sd_event_default(&manager->event);
        if (r >= 0)
                r = sd_event_add_signal(manager->event, NULL, SIGTERM, NULL, NULL);
        if (r >= 0)
                r = sd_event_add_signal(manager->event, NULL, SIGINT, NULL, NULL);
        if (r >= 0)
                r = sd_event_set_watchdog(manager->event, true); /* a loop that hangs is noticed */
        return r < 0 ? r : 0;
}

static const struct control_service service = { .call = methods_call,
                                                .client_gone = image_client_gone,
                                                .before_answer = history_write };

static int open_sockets(struct manager *manager, struct failure *failure)
{
        int r = publisher_new(&manager->publisher, manager);

        if (r == 0)
                r = manager->scenario ? 0 : settings_restore(manager); /* it says what is */
        if (r == 0)
                r = control_new(&manager->control, manager, &service);
        if (r == 0)
                r = guest_socket_new(&manager->guest_socket, manager);
        if (r == -EPERM && manager->options->has_group)
                return failure_set(failure, r, "Failed",
                                   "run vgpud as root, or name a group of its user",
                                   "the state page and the sockets cannot be given to group %u",
                                   manager->options->group);
        return r;
}

/* Of an operation that had happened: the next thing would have been to let go of the memory. */
static void drop_leftovers(struct instance *instance)
{
        struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                recovery_drop_sources(guest);
}

static int recover(struct manager *manager)
{
        struct store_operation stored;
        struct instance *instance, *after;
        int r;

        list_for_each_safe(instance, after, &manager->instances, link) {
                r = store_get_operation(manager->store, instance->id, &stored);
                if (r == 0)
                        r = operation_recover(instance, &stored);
                else if (r == -ENOENT)
                        drop_leftovers(instance);
                if (r < 0 && r != -ENOENT)
                        return r;
                instance_settle(instance);
        }
        return 0;
}

static void serve(struct manager *manager)
{
        manager->is_ready = true;
        manager->patience = sd_event_source_disable_unref(manager->patience);
        /* The pages may have ceilings of the manager before, which has closed them in the middle of something. */
        for (size_t i = 0; i < manager->n_devices; i++)
                ceiling_look(&manager->device[i]);
        control_start(manager->control);
        (void)sd_notifyf(0, "READY=1\nSTATUS=%zu devices", manager->n_devices);
        log_event(LOG_LEVEL_NOTICE, "ready", "version=%s devices=%zu simulated=%d run_dir=%s",
                  OPENVGPU_VERSION, manager->n_devices, manager->simulation[0] != '\0',
                  manager->options->run_directory);
}

/* Clients are served once nothing is left to recover. */
static void check_ready(void *userdata)
{
        struct manager *manager = userdata;
        const struct instance *instance;

        if (manager->is_ready)
                return;
        list_for_each(instance, &manager->instances, link)
                if (instance->operation)
                        return;
        serve(manager);
}

/* Or after a while: one process that is stopped, or that the driver does not answer for, is no reason for others to wait. */

static const char *find_reason(const struct guest *guest)
{
        enum process_halt halt = process_get_halt(guest->pid);

        if (halt != PROCESS_RUNS)
                return process_describe_halt(halt);
        if (silence_lasts(guest))
                return "the driver does not answer for it";
        if (!guest->gate)
                return "its gate has not come back";
        return guest->context.state == GUEST_CONTEXT_SUSPENDING ||
                               guest->context.state == GUEST_CONTEXT_RESUMING
                       ? "the driver has not answered for it yet"
                       : "it is being recovered";
}

static void name_unrecovered(const struct instance *instance)
{
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                log_event_of(guest->payer, LOG_LEVEL_WARNING,
                             "clients are served before a process is recovered",
                             "vgpu=%s pid=%d reason=\"%s\"", instance->name, (int)guest->pid,
                             find_reason(guest));
}

static int on_patience(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct manager *manager = userdata;
        const struct instance *instance;

        (void)source, (void)usec;
        list_for_each(instance, &manager->instances, link)
                if (instance->operation)
                        name_unrecovered(instance);
        serve(manager);
        return 0;
}

static struct observer observer = { .changed = check_ready };

/* The database says so itself; what else a start writes is in the run directory. */
static int explain(const struct options *options, int error, struct failure *failure)
{
        if (error == -ENOSPC || error == -EDQUOT)
                return failure_set(failure, error, "Failed", "free some room there and start again",
                                   "no room is left in the run directory %.300s",
                                   options->run_directory);
        return failure_from_errno(failure, error, "starting");
}

int manager_new(struct manager **ret_manager, const struct options *options,
                struct failure *failure)
{
        CLEANUP(manager_freep) struct manager *manager = calloc(1, sizeof(*manager));
        int r;

        if (!manager)
                return -ENOMEM;
        manager->lock = manager->hash_key = -1;
        manager->began_ns = clock_now(CLOCK_MONOTONIC);
        manager->tally.started_ns = clock_now(CLOCK_REALTIME);
        list_init(&manager->instances);
        list_init(&manager->comparisons);
        list_init(&manager->room_makers);
        manager->device = calloc(STATE_DEVICES_MAX, sizeof(*manager->device));
        if (!manager->device)
                return -ENOMEM;
        manager->options = options;

        r = set_up_surroundings(manager, failure);
        if (r == 0)
                r = set_up_event(manager);
        if (r == 0)
                r = open_accounts(manager);
        if (r == 0)
                r = load(manager, failure);
        if (r == 0)
                r = open_sockets(manager, failure);
        if (r == 0)
                r = recover(manager);
        if (r < 0)
                return explain(options, r, failure);
        manager->began_ns =
                clock_now(CLOCK_MONOTONIC); /* movers of the one before may have been waited for */
        meter_start(manager->meter);
        guest_socket_start(manager->guest_socket);
        *ret_manager = TAKE(manager);
        return 0;
}

void manager_serve(struct manager *manager)
{
        observer_add(&manager->observers, &observer, manager);
        check_ready(manager);
        if (!manager->is_ready &&
            sd_event_add_time_relative(manager->event, &manager->patience, CLOCK_MONOTONIC,
                                       PATIENCE_MS * 1000ull, 0, on_patience, manager) < 0)
                serve(manager);
}

int manager_run(struct manager *manager)
{
        int r = sd_event_loop(manager->event);

        (void)sd_notify(0, "STOPPING=1");
        log_event(LOG_LEVEL_NOTICE, "ending", "result=%d", r);
        return r;
}

/* What has died, and the loop has not come to it. An operation is for the next manager to undo. */
static void free_guests_ended_unseen(struct instance *instance)
{
        struct guest *guest, *after;

        if (instance->operation)
                return;
        list_for_each_safe(guest, after, &instance->guests, link) {
                struct pollfd death = { .fd = guest->pidfd, .events = POLLIN };

                if (guest_is_dead(guest) || poll(&death, 1, 0) > 0)
                        guest_free(guest);
        }
}

/* A keeper that holds nothing ends; pages without processes can be made anew. */
static void drop_idle_pages(struct manager *manager)
{
        struct instance *instance;

        list_for_each(instance, &manager->instances, link) {
                free_guests_ended_unseen(instance);
                if (!list_is_empty(&instance->guests))
                        continue;
                recovery_drop_pages(instance);
                reserve_drop(instance);
        }
}

struct manager *manager_free(struct manager *manager)
{
        struct instance *instance, *after;

        if (!manager)
                return NULL;
        manager->meter = meter_free(manager->meter); /* answers who waits for the ledger */
        manager->control = control_free(manager->control);
        manager->guest_socket = guest_socket_free(manager->guest_socket);
        if (manager->keeper)
                drop_idle_pages(manager);
        manager->publisher = publisher_free(manager->publisher);
        manager->stage = virtual_free(manager->stage);
        write_ahead_end(manager);
        read_ahead_end(manager);
        spilling_close(manager);
        for (size_t i = 0; i < manager->n_devices; i++)
                device_deinit(&manager->device[i]);
        for (size_t i = 0; i < manager->n_devices; i++)
                manager->device[i].schedule = schedule_free(manager->device[i].schedule);
        manager->is_unused = list_is_empty(&manager->instances);
        list_for_each_safe(instance, after, &manager->instances, link)
                instance_free(instance);
        manager->residency = residency_free(manager->residency);
        manager->history = history_free(manager->history);
        manager->backlog = backlog_free(manager->backlog);
        manager->burial = burial_free(manager->burial);
        manager->pool = pool_free(manager->pool);
        manager->held = held_free(manager->held);
        manager->hash_key = fd_close(manager->hash_key);
        manager->keeper = keeper_free(manager->keeper);
        manager->store = store_close(manager->store);
        manager->fair_queue = fair_queue_free(manager->fair_queue);
        manager->pinning = pinning_free(manager->pinning);
        manager->unread = unread_free(manager->unread);
        foreign_end();
        manager->accounts = accounts_free(manager->accounts);
        sd_event_source_disable_unref(manager->patience);
        sd_event_unref(manager->event);
        simulation_end(manager);
        fd_close(manager->lock);
        free(manager->device);
        free(manager);
        return NULL;
}
