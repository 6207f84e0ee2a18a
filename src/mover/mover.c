/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpu-mover: the only program of the manager's that loads CUDA (wire/mover.h).
 *
 * The main thread reads the socket. It keeps the table of jobs to itself and puts
 * all other work on lanes (mover/lane.h), so that copies, checkpoints and the
 * preparation of slabs overlap. A request that makes no sense ends the program:
 * the manager sees that, and nothing of the manager's state is in here.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/cuda-fault.h"
#include "base/cleanup.h"
#include "base/descriptors.h"
#include "base/fault.h"
#include "base/packet.h"
#include "base/privilege.h"
#include "mover/answer.h"
#include "mover/checkpoint.h"
#include "mover/device.h"
#include "mover/driver.h"
#include "mover/hold.h"
#include "mover/job.h"
#include "mover/lane.h"
#include "mover/lending.h"
#include "mover/probe.h"
#include "mover/process-call.h"
#include "mover/slab.h"
#include "mover/transfer.h"

/*
 * How many threads a lane has. Copies share the bus, and one a direction fills it; the others let
 * small jobs pass large ones. Staging waits on nothing, so a run that waits for its staging ends.
 * Processes of one vGPU are checkpointed at the same time. Slabs and contexts change one after
 * another; before that slabs get their pages, several at a time: the kernel's lock is that of a
 * file. A task that takes memory to hold it may wait for restores: a question for what is free
 * shall not wait behind that.
 */
enum lane_name {
        LANE_CONTROL,
        LANE_SLAB,
        LANE_STAGE,
        LANE_COPY,
        LANE_CHECKPOINT,
        LANE_HOLD,
        LANE_LEND,
        LANE_FILL,
        LANE_LOAD,
        N_LANES
};
static const unsigned int n_lane_threads[] = { 1, 1, 4, 4, 8, 1, 1, 4, 1 };

_Static_assert(sizeof(n_lane_threads) / sizeof(n_lane_threads[0]) == N_LANES, "one each");

struct mover {
        const char *uuid;
        struct device device;
        struct slabs slabs;
        struct holds holds;
        struct lendings lendings;
        atomic_uint n_staging;
        struct lane lanes[N_LANES];
        struct task loading; /* of the hasher, while @is_loading */
        atomic_bool is_loading;
        atomic_uint n_slabs_coming;
        struct job *jobs;   /* main thread */
        atomic_uint n_jobs; /* that hold, or may hold, memory */
};

union packet {
        struct mover_header header;
        struct mover_slab slab;
        struct mover_job_begin begin;
        struct mover_memory memory;
        struct mover_segments segments;
        struct mover_hashes hashes;
        struct mover_stage stage;
        struct mover_checkpoint checkpoint;
        struct mover_hold hold;
        struct mover_lend lend;
        char space[PACKET_SIZE_MAX];
};

struct request {
        struct task task; /* first: a task is a request */
        struct mover *mover;
        int (*run)(struct request *request, struct mover_done *done);
        int error;               /* SLAB_ADD: of its beginning */
        struct job *job;         /* JOB_STAGE, JOB_RUN, JOB_END: a reference */
        struct lending *lending; /* LEND_END: what ends; NULL: it was lent by a mover before us */
        union packet packet;
        int fds[PACKET_FDS_MAX];
        size_t n_fds;
};

static struct request *request_free(struct request *request)
{
        if (!request)
                return NULL;

        packet_close_fds(request->fds, request->n_fds);
        job_unref(request->job);
        lending_free(request->lending);
        free(request);
        return NULL;
}

DEFINE_CLEANUP(struct request *, request_free);

/* Requests that run on the lanes. */

static int run_info(struct request *request, struct mover_done *done)
{
        struct mover *mover = request->mover;
        struct mover_info info = { 0 };
        uint64_t free_bytes = 0;
        size_t total = 0;
        int version = 0, r;

        r = DRIVER_CALL(done, cuDriverGetVersion, &version);
        if (r == 0)
                r = DRIVER_CALL(done, cuDeviceTotalMem_v2, &total, mover->device.id);
        info.has_context = device_has_context(&mover->device);
        if (r == 0 && info.has_context)
                r = device_read_free(&mover->device, &free_bytes, done);
        if (r < 0)
                return r;

        info.driver_version = (uint32_t)version;
        info.memory_total = total;
        info.memory_free = free_bytes;
        answer_info(&request->packet.header, &info);
        return 0;
}

static int run_key(struct request *request, struct mover_done *done)
{
        (void)done;
        return hasher_set_key(&request->mover->device.hasher, request->fds[0]);
}

/* A job that comes next may use it, so it is there at once. */
static int begin_slab(struct mover *mover, struct request *request)
{
        const struct mover_slab *slab = &request->packet.slab;

        mover->n_slabs_coming++;
        request->error = slab_begin(&mover->slabs, slab->slab, request->fds[0], slab->size);
        return 0;
}

static void fill_slab(struct request *request)
{
        if (request->error == 0)
                slab_fill(&request->mover->slabs, request->packet.slab.slab);
}

/*
 * The process that gets a slab will be copied to it, and shall not wait for the driver to compile the kernel then. But
 * while it does no slab is registered and no copy queued; a job that is there already does it itself, behind its copy.
 */
static void load_hasher(struct task *task)
{
        struct mover *mover = (struct mover *)((char *)task - offsetof(struct mover, loading));
        struct mover_done ignored = { 0 };

        if (device_enter(&mover->device, &ignored) == 0)
                (void)device_load_hasher(&mover->device,
                                         &ignored); /* the job tries again, and says why */
        mover->is_loading = false;
}

static void load_hasher_ahead(struct mover *mover)
{
        if (!hasher_wants_loading(&mover->device.hasher) ||
            atomic_exchange(&mover->is_loading, true))
                return;
        if (lane_add(&mover->lanes[LANE_LOAD], &mover->loading) < 0)
                mover->is_loading = false;
}

static int run_slab_add(struct request *request, struct mover_done *done)
{
        struct mover *mover = request->mover;
        int r = request->error;

        if (r == 0)
                r = slab_add(&mover->slabs, &mover->device, request->packet.slab.slab, done);
        if (--mover->n_slabs_coming == 0 && mover->n_jobs == 0)
                load_hasher_ahead(mover);
        return r;
}

static int run_slab_zero(struct request *request, struct mover_done *done)
{
        int r = driver_fault_point(done, "mover.slab-zeroing");

        if (r == 0)
                r = slab_zero(&request->mover->slabs, request->packet.slab.slab);
        return r < 0 ? r : driver_fault_point(done, "mover.slab-zeroed");
}

static int run_slab_remove(struct request *request, struct mover_done *done)
{
        return slab_remove(&request->mover->slabs, &request->mover->device,
                           request->packet.slab.slab, done);
}

static int run_job_stage(struct request *request, struct mover_done *done)
{
        (void)done; /* the run tells a failure */
        transfer_stage(request->job, &request->mover->device, &request->packet.header,
                       request->packet.stage.limit);
        request->mover->n_staging--;
        return 0;
}

static int run_job(struct request *request, struct mover_done *done)
{
        return transfer_run(request->job, &request->mover->device, &request->packet.header, done);
}

static int run_job_end(struct request *request, struct mover_done *done)
{
        (void)done;
        (void)fault_point("mover.job-ending"); /* to kill or to wait; it cannot fail */
        job_end(request->job);
        request->mover->n_jobs--;
        return 0;
}

static int run_checkpoint(struct request *request, struct mover_done *done)
{
        struct mover *mover = request->mover;

        return checkpoint_run(&mover->device, &mover->holds, &request->packet.checkpoint,
                              request->fds[0], done);
}

static int run_hold(struct request *request, struct mover_done *done)
{
        const struct mover_hold *hold = &request->packet.hold;
        struct mover *mover = request->mover;

        if (hold->bytes > 0)
                return hold_take(&mover->holds, &mover->device, hold->pid, hold->bytes,
                                 hold->header.id, ROOM_WAIT_MS, done);
        (void)fault_point("mover.hold-dropping"); /* to wait; it cannot fail */
        return hold_drop(&mover->holds, hold->pid, hold->header.id, done);
}

static enum room_window get_window(const struct mover_lend *lend)
{
        return lend->call == MOVER_CALL_RESTORE ? ROOM_RESTORING : ROOM_FREEING;
}

static int begin_lending(struct mover *mover, const struct mover_lend *lend,
                         struct margin_claim *ret_claim, struct mover_done *done)
{
        bool is_restore = lend->call == MOVER_CALL_RESTORE;
        int r = device_claim(&mover->device, is_restore ? MARGIN_RESTORE : MARGIN_CHECKPOINT,
                             hold_get(&mover->holds, lend->pid), ret_claim);

        if (r == 0 && is_restore)
                r = hold_drop(&mover->holds, lend->pid, lend->header.id, done);
        if (r < 0)
                device_unclaim(&mover->device, ret_claim);
        return r;
}

static int run_lend(struct request *request, struct mover_done *done)
{
        const struct mover_lend *lend = &request->packet.lend;
        struct mover *mover = request->mover;
        struct lending *lending;
        int r;

        if (lend->call >= MOVER_CALLS)
                return -EINVAL;
        lending = lending_new(lend->pid, lend->call);
        if (!lending)
                return -ENOMEM;
        device_open_window(&mover->device, get_window(lend));
        device_lend_margin(&mover->device);
        r = begin_lending(mover, lend, &lending->claim, done);
        if (r < 0) {
                device_close_window(&mover->device, get_window(lend));
                device_return_margin(&mover->device);
                lending_free(lending);
        } else {
                lending_begin(&mover->lendings, lending);
        }
        return r;
}

/*
 * The hold waits for restoring windows: it keeps no lane that their ends need, for those are closed before. It is the
 * end of a checkpoint that may have windows in other movers still: it does not wait for long.
 */
static int run_lend_end(struct request *request, struct mover_done *done)
{
        const struct mover_lend *lend = &request->packet.lend;
        struct mover *mover = request->mover;
        int r = 0;

        if (!request->lending) /* the mover that has lent it has ended, with all that it held */
                return lend->bytes > 0 ? -ENOENT : 0;
        if (lend->call == MOVER_CALL_CHECKPOINT) {
                if (lend->bytes > 0)
                        r = hold_take_within(&mover->holds, &mover->device, lend->pid, lend->bytes,
                                             lend->header.id, HOLD_WITHIN_MS, done);
                device_close_window(&mover->device, ROOM_FREEING);
        }
        device_return_margin(&mover->device);
        return r;
}

static int run_context(struct request *request, struct mover_done *done)
{
        (void)fault_point("mover.entering"); /* to wait; it cannot fail */
        return device_enter(&request->mover->device, done);
}

/* The main thread does these itself, before a lane or instead. A failure ends the program. */

static struct job **find_job(struct mover *mover, const struct request *request)
{
        struct job **job = &mover->jobs;

        while (*job && (*job)->id != request->packet.header.job)
                job = &(*job)->next;
        return job;
}

static int begin_job(struct mover *mover, struct request *request)
{
        struct job *job;
        int r;

        if (*find_job(mover, request))
                return -EPROTO;

        r = job_new(&job, &request->packet.begin, &mover->slabs);
        if (r < 0)
                return r;
        job->next = mover->jobs;
        mover->jobs = job;
        mover->n_jobs++;
        return 0;
}

/* All of the source must be there before staging, and the target before the run. */

static int add_source(struct mover *mover, struct request *request)
{
        struct job *job = *find_job(mover, request);

        if (!job || job->is_staged || job->is_started)
                return -EPROTO;
        return job_add_source(job, &request->packet.memory, request->fds, request->n_fds);
}

static int add_segments(struct mover *mover, struct request *request)
{
        struct job *job = *find_job(mover, request);

        if (!job || job->is_staged || job->is_started)
                return -EPROTO;
        return job_add_segments(job, &request->packet.segments);
}

static int add_hashes(struct mover *mover, struct request *request)
{
        struct job *job = *find_job(mover, request);

        if (!job || job->is_started)
                return -EPROTO;
        return job_add_hashes(job, &request->packet.hashes);
}

static int add_memory(struct mover *mover, struct request *request)
{
        struct job *job = *find_job(mover, request);

        if (!job || job->is_started)
                return -EPROTO;
        return job_add_memory(job, &request->packet.memory, request->fds, request->n_fds);
}

static int stage_job(struct mover *mover, struct request *request)
{
        struct job *job = *find_job(mover, request);

        if (!job || job->kind == MOVER_OUT || job->is_staged || job->is_started)
                return -EPROTO;
        job->is_staged = true;
        job->stage = JOB_QUEUED;
        request->job = job_ref(job);
        if (mover->n_staging++ < n_lane_threads[LANE_STAGE]) /* a thread takes it on at once */
                transfer_begin_taking(job, &mover->device);
        return 0;
}

static int start_job(struct mover *mover, struct request *request)
{
        struct job *job = *find_job(mover, request);

        if (!job || job->is_started)
                return -EPROTO;
        job->is_started = true;
        job->run = JOB_QUEUED;
        request->job = job_ref(job);
        return 0;
}

static int stop_job(struct mover *mover, struct request *request)
{
        struct job *job = *find_job(mover, request);

        if (!job)
                return -EPROTO;
        job_stop(job);
        return 0;
}

/* The call is answered: its claim ends here, and a restore's window, behind no call that waits for them. */
static int begin_lend_end(struct mover *mover, struct request *request)
{
        const struct mover_lend *lend = &request->packet.lend;

        request->lending = lending_end(&mover->lendings, lend->pid, lend->call);
        if (!request->lending)
                return 0;
        device_unclaim(&mover->device, &request->lending->claim);
        if (lend->call == MOVER_CALL_RESTORE)
                room_close(&mover->device.room, ROOM_RESTORING);
        return 0;
}

static int end_job(struct mover *mover, struct request *request)
{
        struct job **place = find_job(mover, request);

        if (!*place)
                return -EPROTO;
        request->job = *place; /* the table's reference */
        *place = request->job->next;
        return 0;
}

/* The requests. @begin runs in the main thread, then @prepare on a lane of its own, then @run on @lane. */
static const struct operation {
        const char *name; /* in log lines */
        size_t size;
        size_t n_fds_max;
        int (*begin)(struct mover *mover, struct request *request);
        void (*prepare)(struct request *request); /* on LANE_FILL */
        int (*run)(struct request *request, struct mover_done *done);
        enum lane_name lane;
        bool is_silent; /* no DONE when it succeeds */
} operations[] = {
        [MOVER_INFO] = { "info", sizeof(struct mover_header), .run = run_info, .is_silent = true },
        [MOVER_KEY] = { "key", sizeof(struct mover_header), .n_fds_max = 1, .run = run_key },
        [MOVER_CONTEXT] = { "context", sizeof(struct mover_header), .run = run_context },
        [MOVER_SLAB_ADD] = { "slab-add", sizeof(struct mover_slab), .n_fds_max = 1,
                             .begin = begin_slab, .prepare = fill_slab, .run = run_slab_add,
                             .lane = LANE_SLAB },
        [MOVER_SLAB_ZERO] = { "slab-zero", sizeof(struct mover_slab), .run = run_slab_zero,
                              .lane = LANE_SLAB },
        [MOVER_SLAB_REMOVE] = { "slab-remove", sizeof(struct mover_slab), .run = run_slab_remove,
                                .lane = LANE_SLAB },
        [MOVER_JOB_BEGIN] = { "job-begin", sizeof(struct mover_job_begin), .begin = begin_job },
        [MOVER_JOB_SOURCE] = { "job-source", sizeof(struct mover_memory),
                               .n_fds_max = MOVER_MEMORY_MAX, .begin = add_source },
        [MOVER_JOB_SEGMENTS] = { "job-segments", sizeof(struct mover_segments),
                                 .begin = add_segments },
        [MOVER_JOB_HASHES] = { "job-hashes", sizeof(struct mover_hashes), .begin = add_hashes },
        [MOVER_JOB_MEMORY] = { "job-memory", sizeof(struct mover_memory),
                               .n_fds_max = MOVER_MEMORY_MAX, .begin = add_memory },
        [MOVER_JOB_STAGE] = { "job-stage", sizeof(struct mover_stage), .begin = stage_job,
                              .run = run_job_stage, .lane = LANE_STAGE, .is_silent = true },
        [MOVER_JOB_RUN] = { "job-run", sizeof(struct mover_header), .begin = start_job,
                            .run = run_job, .lane = LANE_COPY },
        [MOVER_JOB_STOP] = { "job-stop", sizeof(struct mover_header), .begin = stop_job },
        [MOVER_JOB_END] = { "job-end", sizeof(struct mover_header), .begin = end_job,
                            .run = run_job_end },
        [MOVER_HOLD] = { "hold", sizeof(struct mover_hold), .run = run_hold },
        [MOVER_LEND] = { "lend", sizeof(struct mover_lend), .run = run_lend, .lane = LANE_LEND },
        [MOVER_LEND_END] = { "lend-end", sizeof(struct mover_lend), .begin = begin_lend_end,
                             .run = run_lend_end, .lane = LANE_CHECKPOINT },
        [MOVER_CHECKPOINT] = { "checkpoint", sizeof(struct mover_checkpoint), .n_fds_max = 1,
                               .run = run_checkpoint, .lane = LANE_CHECKPOINT },
};

static void log_failure(const struct mover *mover, const struct mover_header *request,
                        const struct mover_done *done, int error)
{
        fprintf(stderr,
                "mover: event=request-failed device=%s request=%s id=%" PRIu32 " job=%" PRIu32
                " call=%s code=%d error=\"%s\"\n",
                mover->uuid, operations[request->message].name, request->id, request->job,
                done->call[0] ? done->call : "-", done->driver_code, strerrordesc_np(-error));
}

/*
 * With a broken context nothing works on the device any more, for any request: the manager tries again with
 * another mover, as after any death. What a checkpoint answers is of the process that it is of.
 */
static void end_if_broken(const struct mover_header *request, const struct mover_done *done)
{
        if ((request->message == MOVER_CHECKPOINT &&
             strncmp(done->call, "cuCheckpoint", strlen("cuCheckpoint")) == 0) ||
            !cuda_breaks_context((CUresult)done->driver_code))
                return;
        fprintf(stderr, "mover: event=broken code=%d\n", done->driver_code);
        _exit(EXIT_FAILURE);
}

static void run_request(struct task *task)
{
        CLEANUP(request_freep) struct request *request = (struct request *)task;
        struct mover_done done = { .process_state = -1 };
        int r;

        r = request->run(request, &done);
        if (r < 0 && r != -ECANCELED) { /* that was asked for */
                log_failure(request->mover, &request->packet.header, &done, r);
                end_if_broken(&request->packet.header, &done);
        }
        if (r < 0 || !operations[request->packet.header.message].is_silent)
                answer_done(&request->packet.header, &done, r);
        process_told();
}

static void prepare_request(struct task *task)
{
        struct request *request = (struct request *)task;
        const struct operation *operation = &operations[request->packet.header.message];

        operation->prepare(request);
        task->run = run_request;
        if (lane_add(&request->mover->lanes[operation->lane], task) < 0)
                run_request(task);
}

static const struct operation *find_operation(const union packet *packet, size_t size, size_t n_fds)
{
        const struct mover_header *header = &packet->header;
        const struct operation *operation;

        if (size < sizeof(*header) || header->magic != MOVER_WIRE_MAGIC ||
            header->version != MOVER_WIRE_VERSION ||
            header->message >= sizeof(operations) / sizeof(operations[0]))
                return NULL;

        operation = &operations[header->message];
        return operation->size == size && n_fds <= operation->n_fds_max ? operation : NULL;
}

static bool needs_descriptor(const struct operation *operation)
{
        return operation->run == run_slab_add || operation->run == run_checkpoint ||
               operation->run == run_key;
}

/* To let go is dealt with before the next question for what is free. */
static struct lane *choose_lane(struct mover *mover, const struct request *request)
{
        if (request->run == run_hold && request->packet.hold.bytes > 0)
                return &mover->lanes[LANE_HOLD];
        if (request->task.run == prepare_request)
                return &mover->lanes[LANE_FILL];
        return &mover->lanes[operations[request->packet.header.message].lane];
}

static int serve_one(struct mover *mover)
{
        CLEANUP(request_freep) struct request *request = calloc(1, sizeof(*request));
        const struct operation *operation;
        size_t size;
        int r;

        if (!request)
                return -ENOMEM;

        r = packet_receive(MOVER_SOCKET, &request->packet, &size, request->fds, &request->n_fds);
        if (r < 0)
                return r;

        operation = find_operation(&request->packet, size, request->n_fds);
        if (!operation || (needs_descriptor(operation) && request->n_fds != 1))
                return -EPROTO;

        r = operation->begin ? operation->begin(mover, request) : 0;
        if (r < 0 || !operation->run)
                return r;

        request->mover = mover;
        request->run = operation->run;
        request->task.run = operation->prepare ? prepare_request : run_request;
        r = lane_add(choose_lane(mover, request), &request->task);
        if (r == 0)
                TAKE(request);
        return r;
}

static int serve(struct mover *mover)
{
        int r;

        do
                r = serve_one(mover);
        while (r == 0);

        /* A checkpoint that is under way is finished: half of one is worse than either end. */
        lane_close(&mover->lanes[LANE_CHECKPOINT]);
        (void)fault_point("mover.leaving");
        if (r == -ENODATA || r == -ECONNRESET)
                return 0;
        fprintf(stderr, "mover: event=protocol-broken device=%s error=\"%s\"\n", mover->uuid,
                strerrordesc_np(-r));
        return r;
}

static int mover_init(struct mover *mover, const char *uuid)
{
        struct mover_done done = { 0 };
        int r;

        mover->uuid = uuid;
        slabs_init(&mover->slabs);
        mover->loading.run = load_hasher;
        pthread_mutex_init(&mover->holds.lock, NULL);
        pthread_mutex_init(&mover->lendings.lock, NULL);
        for (size_t i = 0; i < N_LANES; i++)
                lane_init(&mover->lanes[i], n_lane_threads[i]);

        r = device_init(&mover->device, uuid, &done);
        if (r < 0)
                fprintf(stderr, "mover: event=no-device device=%s call=%s code=%d\n", uuid,
                        done.call[0] ? done.call : "-", done.driver_code);
        return r;
}

static int usage(void)
{
        fputs("usage: vgpu-mover --probe | vgpu-mover DEVICE-UUID\n"
              "vgpud starts this program, you do not need to.\n",
              stderr);
        return 2;
}

int main(int argc, char **argv)
{
        static struct mover mover; /* its threads may outlive main()'s frame */
        int r;

        if (argc != 2)
                return usage();

        (void)privilege_keep(PRIVILEGE_MOVER);
        descriptors_make_room();
        r = driver_load();
        if (strcmp(argv[1], "--probe") == 0) {
                if (r == 0)
                        r = probe_print();
                return r < 0 && r != -ENODEV ? 1 : 0;
        }
        if (r == 0)
                r = mover_init(&mover, argv[1]);
        if (r == 0)
                r = serve(&mover);

        /* Not exit(): other threads are in the driver, and its exit handlers would wait for them. */
        _exit(r < 0 ? 1 : 0);
}
