/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/facts.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/paths.h"
#include "base/trust.h"
#include "state/state-page.h"

struct facts_reader {
        const struct state_page *state_page; /* NULL: none is open */
};

/* A vGPU, and what its record in the library's form points to. */
struct vgpu {
        struct state_vgpu state;
        struct vgpu_usage_instance usage;
        struct vgpu_usage_percents percents;
        size_t n_processes;
        const struct vgpu_usage_process **processes;
        size_t n_parts;
        const struct vgpu_usage_part **parts;
};

struct part {
        struct state_vgpu_part state;
        struct vgpu_usage_part usage;
        struct vgpu_usage_percents percents;
        struct vgpu *vgpu;
};

struct process {
        struct state_process state;
        struct state_process_use use;
        struct vgpu_usage_process usage;
        struct vgpu_usage_percents percents;
        struct vgpu_usage_seconds seconds;
        struct vgpu *vgpu;
};

struct device {
        struct state_device state;
        struct state_device_use use;
        struct vgpu_usage_device usage;
        struct vgpu_usage_percents percents;
};

/* What the caller sees, and behind it what it points to. */
struct box {
        struct facts facts;
        struct state_manager manager;
        struct vgpu_pool pool;
        struct device device[STATE_DEVICES_MAX];
        const struct vgpu_usage_device *devices[STATE_DEVICES_MAX];
        struct state_operation operation[STATE_OPERATIONS_MAX];
        struct vgpu_statistics_operation counted[STATE_OPERATIONS_MAX];
        const struct vgpu_statistics_operation *operations[STATE_OPERATIONS_MAX];

        struct vgpu *vgpu; /* of each that there is */
        const struct vgpu_usage_instance **instances;
        struct vgpu **by_slot; /* NULL: no vGPU has the slot */
        uint32_t n_slots;
        struct part *part;
        size_t n_parts;
        const struct vgpu_usage_part **parts; /* one vGPU's after the other's, as the next */
        struct process *process;
        size_t n_processes;
        const struct vgpu_usage_process **processes;
};

static void box_free(struct box *box)
{
        if (!box)
                return;
        free(box->vgpu);
        free(box->instances);
        free(box->by_slot);
        free(box->part);
        free(box->parts);
        free(box->process);
        free(box->processes);
        free(box);
}

DEFINE_CLEANUP(struct box *, box_free);

static struct vgpu_usage_percents get_percents(const struct state_percents *percent)
{
        return (struct vgpu_usage_percents){ percent->gpu,     percent->memory, percent->encoder,
                                             percent->decoder, percent->jpeg,   percent->ofa };
}

/* The manager. */

static void fill_manager(struct box *box, const struct state_page *state_page)
{
        const struct state_manager *told = &box->manager;
        const struct state_pool *pool = &told->pool;

        box->pool = (struct vgpu_pool){
                .limit = pool->limit,
                .size = pool->size,
                .ready = pool->ready,
                .used = pool->used,
                .held = pool->held,
                .spare = pool->spare,
                .saved = pool->saved,
                .spilled = pool->spilled,
                .spill_limit = pool->spill_limit,
        };
        box->facts.manager = (struct vgpu_manager){
                .version = told->version,
                .is_simulated = state_page->simulated,
                .cuda_driver_version = told->cuda_driver_version,
                .pool = &box->pool,
                .descriptors_used = told->descriptors_used,
                .descriptors_limit = told->descriptors_limit,
        };
}

static void fill_operation(struct box *box, size_t i)
{
        const struct state_operation *told = &box->operation[i];

        box->counted[i] = (struct vgpu_statistics_operation){
                .operation = told->kind,
                .result = told->result,
                .count = told->n,
                .seconds = (double)told->ns / NS_PER_S,
                .bytes = told->bytes,
                .buckets = told->bucket,
                .byte_buckets = told->byte_bucket,
                .last_vgpu = told->last_vgpu,
                .last_seconds = (double)told->last_ns / NS_PER_S,
                .last_time = (double)told->last_at_ns / NS_PER_S,
                .last_bytes = told->last_bytes,
                .n_pre_copies = told->n_ahead,
                .n_pre_copy_rounds = told->n_ahead_rounds,
                .pre_copy_bytes = told->ahead_bytes,
                .pre_copy_seconds = (double)told->ahead_ns / NS_PER_S,
                .pre_copy_stopped_seconds = (double)told->ahead_stopped_ns / NS_PER_S,
        };
        box->operations[i] = &box->counted[i];
}

static size_t at_most(size_t n, size_t most)
{
        return n < most ? n : most;
}

static void read_statistics(struct box *box, const struct state_page *state_page)
{
        const struct state_manager *told = &box->manager;
        size_t n = 0;

        for (uint32_t slot = 0; slot < state_end_operation(state_page); slot++)
                if (state_read_operation(state_page, slot, &box->operation[n]))
                        fill_operation(box, n++);
        box->facts.statistics = (struct vgpu_statistics){
                .started = (double)told->started_ns / NS_PER_S,
                .is_ledger_fine = told->is_ledger_working,
                .n_bounds = at_most(told->n_buckets, STATE_BUCKETS_MAX),
                .bounds = told->bucket,
                .n_byte_bounds = at_most(told->n_byte_buckets, STATE_BUCKETS_MAX),
                .byte_bounds = told->byte_bucket,
                .n_operations = n,
                .operations = box->operations,
        };
}

/* Devices. */

static void fill_device(struct device *device)
{
        const struct state_device_use *use = &device->use;

        device->percents = get_percents(&use->percent);
        device->usage = (struct vgpu_usage_device){
                .index = device->state.index,
                .uuid = device->state.uuid,
                .name = device->state.name,
                .source = use->source,
                .memory_total = device->state.memory_total,
                .memory_used = use->memory_used,
                .percents = &device->percents,
                .memory_promised = use->memory_promised,
                .memory_swapped = use->memory_swapped,
                .is_overcommitted = use->is_overcommitted,
                .n_turns = use->n_turns,
                .turns_mode = use->turns_mode,
        };
}

static void read_devices(struct box *box, const struct state_page *state_page)
{
        size_t n = 0;

        for (uint32_t slot = 0; slot < state_end_device_use(state_page); slot++) {
                struct device *device = &box->device[n];

                if (!state_read_device_use(state_page, slot, &device->use) ||
                    !state_read_device(state_page, slot, &device->state))
                        continue;
                fill_device(device);
                box->devices[n++] = &device->usage;
        }
        box->facts.snapshot.n_devices = n;
        box->facts.snapshot.devices = box->devices;
}

/* vGPUs. */

static enum vgpu_instance_state get_state(uint32_t state)
{
        static const enum vgpu_instance_state states[] = {
                [STATE_IDLE] = VGPU_INSTANCE_IDLE,
                [STATE_RUNNING] = VGPU_INSTANCE_RUNNING,
                [STATE_SUSPENDING] = VGPU_INSTANCE_SUSPENDING,
                [STATE_SUSPENDED] = VGPU_INSTANCE_SUSPENDED,
                [STATE_EVICTED] = VGPU_INSTANCE_EVICTED,
                [STATE_RESUMING] = VGPU_INSTANCE_RESUMING,
                [STATE_MIGRATING] = VGPU_INSTANCE_MIGRATING,
                [STATE_FAILED] = VGPU_INSTANCE_FAILED,
        };

        return state < sizeof(states) / sizeof(states[0]) ? states[state] : VGPU_INSTANCE_FAILED;
}

static double get_seconds_since(uint64_t since_ns, uint64_t now_ns)
{
        return since_ns > 0 && now_ns > since_ns ? (double)(now_ns - since_ns) / NS_PER_S : 0;
}

static void fill_vgpu(struct vgpu *vgpu, uint64_t now_ns)
{
        const struct state_vgpu *told = &vgpu->state;

        vgpu->percents = get_percents(&told->percent);
        vgpu->usage = (struct vgpu_usage_instance){
                .name = told->name,
                .uuid = told->uuid,
                .device = told->device,
                .state = get_state(told->state),
                .frame_buffer = told->frame_buffer,
                .frame_buffer_used = told->frame_buffer_used,
                .entitled = told->entitled,
                .percents = &vgpu->percents,
                .share = told->share,
                .id = told->id,
                .owner = told->owner,
                .n_programs = told->n_programs,
                .gpu_seconds_total = (double)told->gpu_ns / NS_PER_S,
                .idle = told->idle_since_ns ? get_seconds_since(told->idle_since_ns, now_ns) : -1,
                .demand = told->is_waiting ? "waiting for memory" : "",
                .host_memory = told->host_memory,
                .resident_seconds = (double)told->resident_ns / NS_PER_S +
                                    get_seconds_since(told->present_since_ns, now_ns),
                .n_swaps = told->n_swaps,
                .swapped_bytes = told->swapped_bytes,
                .n_waits = told->n_waits,
                .waited_seconds = (double)told->waited_ns / NS_PER_S,
                .swap_class = told->swap_class,
                .container = told->container,
                .n_whole = told->n_whole,
                .n_unwhole = told->n_unwhole,
        };
}

/* By their numbers, as the commands list them: a slot is whose it happens to be. */
static int compare_vgpus(const void *a, const void *b)
{
        const struct vgpu_usage_instance *const *left = a, *const *right = b;

        return ((*left)->id > (*right)->id) - ((*left)->id < (*right)->id);
}

static int read_vgpus(struct box *box, const struct state_page *state_page)
{
        uint64_t now_ns = clock_now(CLOCK_MONOTONIC);
        size_t n = 0;

        box->n_slots = state_end_vgpu(state_page);
        box->vgpu = calloc(box->n_slots + 1, sizeof(*box->vgpu));
        box->instances = calloc(box->n_slots + 1, sizeof(struct vgpu_usage_instance *));
        box->by_slot = calloc(box->n_slots + 1, sizeof(struct vgpu *));
        if (!box->vgpu || !box->instances || !box->by_slot)
                return -ENOMEM;
        for (uint32_t slot = 0; slot < box->n_slots; slot++) {
                struct vgpu *vgpu = &box->vgpu[n];

                if (!state_read_vgpu(state_page, slot, &vgpu->state))
                        continue;
                fill_vgpu(vgpu, now_ns);
                box->by_slot[slot] = vgpu;
                box->instances[n++] = &vgpu->usage;
        }
        qsort(box->instances, n, sizeof(box->instances[0]), compare_vgpus);
        box->facts.snapshot.n_instances = n;
        box->facts.snapshot.instances = box->instances;
        return 0;
}

/* Only of the vGPU that has the slot now. */
static struct vgpu *find_vgpu(const struct box *box, uint32_t slot, uint32_t id)
{
        struct vgpu *vgpu = slot < box->n_slots ? box->by_slot[slot] : NULL;

        return vgpu && vgpu->state.id == id ? vgpu : NULL;
}

/* Their parts. */

static void fill_part(struct part *part)
{
        const struct state_vgpu_part *told = &part->state;

        part->percents = get_percents(&told->percent);
        part->usage = (struct vgpu_usage_part){
                .id = told->id,
                .device = told->device,
                .frame_buffer_used = told->frame_buffer_used,
                .entitled = told->entitled,
                .percents = &part->percents,
                .gpu_seconds_total = (double)told->gpu_ns / NS_PER_S,
        };
}

/* By their numbers. */
static int compare_parts(const void *a, const void *b)
{
        const struct part *left = a, *right = b;

        if (left->vgpu != right->vgpu)
                return left->vgpu < right->vgpu ? -1 : 1;
        return (left->state.number > right->state.number) -
               (left->state.number < right->state.number);
}

static void sort_parts(struct box *box)
{
        qsort(box->part, box->n_parts, sizeof(*box->part), compare_parts);
        for (size_t i = 0; i < box->n_parts; i++) {
                struct vgpu *vgpu = box->part[i].vgpu;

                fill_part(&box->part[i]);
                box->parts[i] = &box->part[i].usage;
                if (vgpu->n_parts++ == 0)
                        vgpu->parts = &box->parts[i];
                vgpu->usage.n_parts = vgpu->n_parts;
                vgpu->usage.parts = vgpu->parts;
        }
}

static int read_parts(struct box *box, const struct state_page *state_page)
{
        uint32_t end = state_end_vgpu_part(state_page);

        box->part = calloc(end + 1, sizeof(*box->part));
        box->parts = calloc(end + 1, sizeof(struct vgpu_usage_part *));
        if (!box->part || !box->parts)
                return -ENOMEM;
        for (uint32_t slot = 0; slot < end; slot++) {
                struct part *part = &box->part[box->n_parts];

                if (!state_read_vgpu_part(state_page, slot, &part->state))
                        continue;
                part->vgpu = find_vgpu(box, part->state.vgpu, part->state.vgpu_id);
                box->n_parts += part->vgpu != NULL;
        }
        sort_parts(box);
        return 0;
}

/* Processes. */

static void fill_process(struct process *process)
{
        const struct state_process *told = &process->state;

        process->percents = (struct vgpu_usage_percents){ .gpu = process->use.utilization_gpu };
        process->seconds = (struct vgpu_usage_seconds){
                .gpu = (double)process->use.gpu_ns / NS_PER_S,
        };
        process->usage = (struct vgpu_usage_process){
                .pid = (int32_t)told->pid,
                .name = told->name,
                .memory_used = process->use.memory_used,
                .percents = &process->percents,
                .seconds = &process->seconds,
                .container = process->use.container,
        };
}

/* One whose slot another one has got between the two records is left out, until the next time. */
static bool read_process(const struct box *box, const struct state_page *state_page, uint32_t slot,
                         struct process *process)
{
        if (!state_read_process_use(state_page, slot, &process->use) ||
            !state_read_process(state_page, slot, &process->state))
                return false;
        process->vgpu = find_vgpu(box, process->use.vgpu, process->use.vgpu_id);
        return process->vgpu;
}

/* Each vGPU gets a part of one array. */
static void sort_processes(struct box *box)
{
        const struct vgpu_usage_process **next = box->processes;

        for (size_t i = 0; i < box->facts.snapshot.n_instances; i++) {
                box->vgpu[i].processes = next;
                next += box->vgpu[i].n_processes;
                box->vgpu[i].n_processes = 0;
        }
        for (size_t i = 0; i < box->n_processes; i++) {
                struct vgpu *vgpu = box->process[i].vgpu;

                vgpu->processes[vgpu->n_processes++] = &box->process[i].usage;
        }
        for (size_t i = 0; i < box->facts.snapshot.n_instances; i++) {
                box->vgpu[i].usage.n_processes = box->vgpu[i].n_processes;
                box->vgpu[i].usage.processes = box->vgpu[i].processes;
        }
}

static int read_processes(struct box *box, const struct state_page *state_page)
{
        uint32_t end = state_end_process_use(state_page);

        box->process = calloc(end + 1, sizeof(*box->process));
        box->processes = calloc(end + 1, sizeof(struct vgpu_usage_process *));
        if (!box->process || !box->processes)
                return -ENOMEM;
        for (uint32_t slot = 0; slot < end; slot++) {
                struct process *process = &box->process[box->n_processes];

                if (!read_process(box, state_page, slot, process))
                        continue;
                fill_process(process);
                process->vgpu->n_processes++;
                box->n_processes++;
        }
        sort_processes(box);
        return 0;
}

/* The page. */

/* A manager that starts makes the page first, fills it, and then shows the first sign of life. */
static bool is_alive(const struct state_page *state_page)
{
        uint64_t beat_ns = atomic_load(&state_page->heartbeat_ns);

        return !atomic_load(&state_page->closed) && beat_ns != 0 &&
               beat_ns + STATE_STALE_NS > clock_now(CLOCK_MONOTONIC);
}

static void close_page(struct facts_reader *reader)
{
        state_unmap(reader->state_page);
        reader->state_page = NULL;
}

static int open_page(struct facts_reader *reader)
{
        CLEANUP(fd_closep) int fd = -1;
        char run[PATHS_MAX], path[PATHS_MAX];
        int r = paths_run_client(run);

        if (r == 0)
                r = paths_join(path, run, PATHS_STATE_PAGE);
        if (r < 0)
                return r;
        fd = trust_open(path, paths_run_is_given());
        return fd < 0 ? fd : state_map_fd(&reader->state_page, fd);
}

/* Its manager may have gone, and another one have made a new file. */
static int find_page(struct facts_reader *reader)
{
        int r;

        if (reader->state_page && is_alive(reader->state_page))
                return 0;
        close_page(reader);
        r = open_page(reader);
        if (r == 0 && !is_alive(reader->state_page)) {
                close_page(reader);
                r = -ENOENT;
        }
        return r;
}

int facts_read(struct facts_reader *reader, bool has_processes, struct facts **ret_facts)
{
        CLEANUP(box_freep) struct box *box = calloc(1, sizeof(*box));
        int r = box ? find_page(reader) : -ENOMEM;

        if (r < 0)
                return r;
        if (!state_read_manager(reader->state_page, 0, &box->manager))
                return -ENOENT;
        fill_manager(box, reader->state_page);
        read_statistics(box, reader->state_page);
        read_devices(box, reader->state_page);
        r = read_vgpus(box, reader->state_page);
        if (r == 0)
                r = read_parts(box, reader->state_page);
        if (r == 0 && has_processes)
                r = read_processes(box, reader->state_page);
        if (r < 0)
                return r;
        *ret_facts = &TAKE(box)->facts;
        return 0;
}

int facts_reader_new(struct facts_reader **ret_reader)
{
        *ret_reader = calloc(1, sizeof(**ret_reader));
        return *ret_reader ? 0 : -ENOMEM;
}

struct facts_reader *facts_reader_free(struct facts_reader *reader)
{
        if (reader)
                close_page(reader);
        free(reader);
        return NULL;
}

struct facts *facts_free(struct facts *facts)
{
        box_free((struct box *)facts);
        return NULL;
}

const char *facts_explain(int error)
{
        switch (-error) {
        case ENOENT:
                return "vgpud does not run, or has said nothing for three seconds (start it: systemctl start "
                       "vgpud)";
        case EACCES:
                return "its state page may not be read, or is not to be believed (its group, and who owns the "
                       "run directory: docs/usage.md)";
        case EPROTONOSUPPORT:
                return "vgpud is of another version (install the same one, and restart both)";
        default:
                return strerror(-error);
        }
}

/* Turns. */

struct turns_log {
        struct vgpu_time_sharing_log log;
        struct vgpu_time_sharing_entry entry[STATE_SCHEDULER_LOG];
        const struct vgpu_time_sharing_entry *entries[STATE_SCHEDULER_LOG];
};

struct vgpu_time_sharing_log *facts_read_turns(const struct facts_reader *reader, uint32_t device,
                                               uint64_t from)
{
        const struct state_page *state_page = reader->state_page;
        uint32_t slot =
                state_slot_of_scheduler(state_site_of_device(device), STATE_ENGINE_GRAPHICS);
        struct turns_log *made = calloc(1, sizeof(*made));
        uint64_t number, first;
        struct state_turn turn;
        size_t n = 0;

        if (!made || !state_page) {
                free(made);
                return NULL;
        }
        made->log.next = state_count_turn(state_page, slot);
        made->log.entries = made->entries;
        first = state_first_turn(state_page, slot);
        for (number = from > first ? from : first;
             number < made->log.next && n < STATE_SCHEDULER_LOG; number++) {
                if (!state_read_turn(state_page, slot, number, &turn))
                        continue;
                made->entry[n] = (struct vgpu_time_sharing_entry){
                        .number = number,
                        .timestamp_ns = turn.timestamp,
                        .id = turn.run_list,
                        .name = "",
                        .run_ns = turn.run,
                        .run_total_ns = turn.run_total,
                        .target_ns = turn.target,
                        .preempted_ns = turn.preempted,
                        .weight = turn.weight,
                };
                made->entries[n] = &made->entry[n];
                n++;
        }
        made->log.n_entries = n;
        return &made->log;
}
