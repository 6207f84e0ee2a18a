/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dumps processes. They are only stopped until the image has its name: if anything fails before this,
 * they continue, with their GPU memory where it was. After this, nothing can fail.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openvgpu/checkpoint.h>

#include "image/criu.h"
#include "lib/image.h"
#include "lib/operation.h"
#include "lib/process-pipes.h"
#include "lib/process-tree.h"

DEFINE_CLEANUP(struct vgpu_instance_list *, vgpu_instance_list_free);

#define TIMEOUT_SECONDS 10.0

struct dump {
        struct vgpu_client *client;
        struct vgpu_image_options options;
        struct image_data_options data_options;
        struct image_comparison *comparison;
        pid_t pid;
        struct process_tree tree;
        struct criu criu;
        struct image_directory directory;
        struct image_manifest manifest;
        struct image_data_report data;

        struct vgpu_instance_list *instances; /* owns: */
        const struct vgpu_instance *instance; /* the vGPU that they are guests of, or NULL */
        struct memory memory;                 /* of the vGPU */
        struct vgpu_checkpoint *checkpoint;   /* of processes that are no guests */
        bool has_suspended, is_stopped;       /* by us */
        double criu_seconds, cuda_seconds;
};

static int fail(struct dump *dump, enum vgpu_error_kind kind, const char *hint, const char *message)
{
        return error_set(&dump->client->error, kind, hint, "process %d: %s", (int)dump->pid,
                         message);
}

/* Who are they? */

static bool is_in(const struct vgpu_instance *instance, const struct process_tree *tree)
{
        for (size_t i = 0; i < instance->n_processes; i++)
                if (process_tree_has(tree, instance->processes[i]->pid))
                        return true;
        return false;
}

static int check_whole(struct dump *dump)
{
        for (size_t i = 0; i < dump->instance->n_processes; i++) {
                int pid = dump->instance->processes[i]->pid;

                if (!process_tree_has(&dump->tree, pid))
                        return error_set(&dump->client->error, VGPU_ERROR_BUSY,
                                         "end it, or dump a process that all of them are below",
                                         "process %d is in vGPU %s as well, but not below %d", pid,
                                         dump->instance->name, (int)dump->pid);
        }
        return 0;
}

/* Without a manager nobody is a guest. */
static int find_instance(struct dump *dump)
{
        int r = vgpu_instance_lookup_all(dump->client, &dump->instances);

        if (r < 0 && dump->client->error.value.kind == VGPU_ERROR_NO_MANAGER) {
                error_clear(&dump->client->error);
                return 0;
        }
        for (size_t i = 0; r == 0 && i < dump->instances->n_instances; i++) {
                const struct vgpu_instance *instance = dump->instances->instances[i];

                if (!is_in(instance, &dump->tree))
                        continue;
                if (dump->instance)
                        return fail(dump, VGPU_ERROR_FAILED, "dump them one after another",
                                    "there are guests of several vGPUs below it");
                dump->instance = instance;
        }
        return r == 0 && dump->instance ? check_whole(dump) : r;
}

static void read_name(pid_t pid, char *ret_name, size_t room)
{
        char path[32];
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
        snprintf(ret_name, room, "another program");
        file = fopen(path, "re");
        if (!file)
                return;
        if (fgets(ret_name, (int)room, file))
                ret_name[strcspn(ret_name, "\n")] = '\0';
        fclose(file);
}

/* CRIU has to stop and trace them all itself; its own words for why it can't are no help. */
static int check_criu_can_stop(struct dump *dump)
{
        pid_t pid = 0, tracer;
        char name[32];

        if (process_tree_has(&dump->tree, getpid()))
                return fail(dump, VGPU_ERROR_BUSY, "start this command from somewhere else",
                            "this command itself is below it");
        tracer = process_tree_find_tracer(&dump->tree, &pid);
        if (tracer == 0)
                return 0;
        read_name(tracer, name, sizeof(name));
        return error_set(&dump->client->error, VGPU_ERROR_BUSY,
                         strncmp(name, "vgpu-checkpoint", 15) == 0
                                 ? "vgpu checkpoint resume it: a dump suspends it by itself"
                                 : "end that first",
                         "process %d is traced by %s (process %d): CRIU could not stop it",
                         (int)pid, name, (int)tracer);
}

static int check_pipes(struct dump *dump)
{
        struct process_pipe pipe;
        char name[32];

        if (dump->options.cut_pipes || !process_pipes_find_cut(&dump->tree, &pipe))
                return 0;
        read_name(pipe.reader, name, sizeof(name));
        return error_set(&dump->client->error, VGPU_ERROR_BUSY,
                         "let it write to files; with --cut-pipes it is dumped as it is",
                         "process %d writes to a pipe (its descriptor %d) that %s (process %d) "
                         "reads: after a load nobody would, and SIGPIPE would end it",
                         (int)pipe.writer, pipe.fd, name, (int)pipe.reader);
}

static int open_parent(struct dump *dump)
{
        int r;

        if (!dump->instance && dump->options.parent)
                return fail(dump, VGPU_ERROR_FAILED, "dump it without --parent",
                            "it is no guest of a vGPU: its GPU memory is in CRIU's files, which "
                            "have no parent");
        r = image_comparison_new(&dump->comparison, dump->client, dump->options.parent,
                                 &dump->data_options);
        return r == 0 && dump->instance
                       ? image_check_parent(dump->client, &dump->data_options, dump->instance)
                       : r;
}

static int prepare(struct dump *dump)
{
        struct image_error error = { 0 };
        int r = process_tree_read(&dump->tree, dump->pid);

        if (r == -E2BIG)
                return fail(dump, VGPU_ERROR_FAILED, "", "there are too many processes below it");
        if (r < 0)
                return error_set_parameter(&dump->client->error, "pid", "there is no process %d",
                                           (int)dump->pid);
        if (criu_find(&dump->criu, dump->options.criu, &error) < 0)
                return image_set_error(dump->client, &error);
        r = check_criu_can_stop(dump);
        if (r == 0)
                r = check_pipes(dump);
        if (r == 0)
                r = find_instance(dump);
        return r == 0 ? open_parent(dump) : r;
}

/* Off the device. */

static int suspend_instance(struct dump *dump)
{
        struct vgpu_operation_options options = VGPU_OPERATION_OPTIONS_INIT;
        int r;

        options.timeout_seconds = dump->options.timeout_seconds;
        if (dump->instance->state == VGPU_INSTANCE_SUSPENDED)
                return 0;
        if (dump->instance->state == VGPU_INSTANCE_EVICTED)
                return error_set(&dump->client->error, VGPU_ERROR_WRONG_STATE,
                                 "vgpu resume it, then dump it",
                                 "the context of vGPU %s is still on its device",
                                 dump->instance->name);
        r = operation_suspend_to_detach(dump->client, dump->instance->name, &options);
        dump->has_suspended = r == 0;
        return r;
}

static int set_checkpoint_error(struct vgpu_client *client,
                                const struct vgpu_checkpoint *checkpoint)
{
        static const struct {
                enum vgpu_checkpoint_error_kind from;
                enum vgpu_error_kind to;
        } kinds[] = {
                { VGPU_CHECKPOINT_ERROR_NO_CUDA, VGPU_ERROR_NO_CUDA },
                { VGPU_CHECKPOINT_ERROR_TIMED_OUT, VGPU_ERROR_TIMED_OUT },
                { VGPU_CHECKPOINT_ERROR_PERMISSION, VGPU_ERROR_PERMISSION_DENIED },
                { VGPU_CHECKPOINT_ERROR_NOT_SUPPORTED, VGPU_ERROR_NOT_MOVABLE },
                { VGPU_CHECKPOINT_ERROR_NO_ROOM, VGPU_ERROR_NO_ROOM },
                { VGPU_CHECKPOINT_ERROR_LOST, VGPU_ERROR_GUEST_LOST },
        };
        const struct vgpu_checkpoint_error *error = vgpu_checkpoint_get_error(checkpoint);
        enum vgpu_error_kind kind = VGPU_ERROR_FAILED;

        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
                if (kinds[i].from == error->kind)
                        kind = kinds[i].to;
        return error_set(&client->error, kind, error->hint, "%s", error->message);
}

/* What somebody else had suspended stays so, also when the dump fails. */
static bool was_running(const struct vgpu_checkpoint *checkpoint)
{
        size_t n;
        const struct vgpu_checkpoint_process *const *processes =
                vgpu_checkpoint_get_processes(checkpoint, &n);

        for (size_t i = 0; i < n; i++)
                if (processes[i]->state_before != VGPU_CHECKPOINT_STATE_CHECKPOINTED)
                        return true;
        return false;
}

static int suspend_processes(struct dump *dump)
{
        struct vgpu_checkpoint_options options = VGPU_CHECKPOINT_OPTIONS_INIT;
        int r = vgpu_checkpoint_new(&dump->checkpoint, dump->pid);

        if (r < 0)
                return fail(dump, VGPU_ERROR_FAILED, "", strerrordesc_np(-r));
        options.with_children = true;
        options.timeout_seconds =
                dump->options.timeout_seconds > 0 ? dump->options.timeout_seconds : TIMEOUT_SECONDS;
        r = vgpu_checkpoint_suspend(dump->checkpoint, &options);
        if (r < 0)
                return set_checkpoint_error(dump->client, dump->checkpoint);
        dump->has_suspended = was_running(dump->checkpoint);
        return 0;
}

static int write_memory(struct dump *dump)
{
        int r = memory_open(&dump->memory, dump->client, dump->instance->name, true);

        if (r == 0)
                r = image_describe_origin(dump->client, dump->instance, &dump->manifest);
        if (r < 0)
                return r;
        image_describe_vgpu(dump->instance, &dump->manifest);
        return image_write_memory(&dump->memory, &dump->directory, &dump->data_options,
                                  &dump->manifest, &dump->data);
}

static int take_off(struct dump *dump)
{
        double start = image_now();
        int r = dump->instance ? suspend_instance(dump) : suspend_processes(dump);

        dump->cuda_seconds = image_now() - start;
        if (r < 0)
                return r;
        return dump->instance ? write_memory(dump)
                              : image_describe_origin(dump->client, NULL, &dump->manifest);
}

/* CRIU. */

static int run_criu(struct dump *dump)
{
        bool is_shell_job = getsid(dump->pid) != dump->pid;
        struct image_error error = { 0 };
        double start = image_now();
        char folder[PATH_MAX + 8];
        int r;

        snprintf(folder, sizeof(folder), "%s/" IMAGE_CRIU_FOLDER, dump->directory.partial);
        if (mkdirat(dump->directory.fd, IMAGE_CRIU_FOLDER, 0700) < 0)
                r = image_fail_file(&error, -errno, "make", folder);
        else
                r = criu_dump(&dump->criu, folder, dump->pid, is_shell_job, &error);
        dump->is_stopped = r == 0;
        if (r == 0) /* now that none of them makes another one */
                (void)process_tree_read(&dump->tree, dump->pid);
        dump->criu_seconds = image_now() - start;
        if (r == 0)
                r = image_directory_list_criu(&dump->directory, &dump->manifest, &error);
        snprintf(dump->manifest.criu.version, sizeof(dump->manifest.criu.version), "%s",
                 dump->criu.version);
        dump->manifest.criu.pid = dump->pid;
        dump->manifest.criu.is_shell_job = is_shell_job;
        if (r == 0)
                r = image_directory_commit(&dump->directory, &dump->manifest, &error);
        return r < 0 ? image_set_error(dump->client, &error) : 0;
}

/* Going on: after a failure, or because that was asked for. */

static int go_on(struct dump *dump)
{
        struct vgpu_checkpoint_options options = VGPU_CHECKPOINT_OPTIONS_INIT;
        int r = 0;

        if (dump->is_stopped)
                process_tree_signal(&dump->tree, SIGCONT);
        memory_close(&dump->memory);
        if (!dump->has_suspended)
                return 0;
        if (dump->instance)
                return vgpu_operation_resume(dump->client, dump->instance->name, NULL, NULL, NULL);
        options.with_children = true;
        r = vgpu_checkpoint_resume(dump->checkpoint, &options);
        return r < 0 ? set_checkpoint_error(dump->client, dump->checkpoint) : 0;
}

static void undo(struct dump *dump)
{
        struct error saved = dump->client->error;
        int r;

        image_directory_abandon(&dump->directory);
        r = go_on(dump);
        if (r == 0) {
                dump->client->error = saved;
                return;
        }
        (void)error_set(&dump->client->error, VGPU_ERROR_GUEST_LOST,
                        "look with vgpu ls and vgpu checkpoint state; try to resume it",
                        "%.200s; and then it could not go on: %.200s", saved.message,
                        dump->client->error.message);
}

/* The image is on the disk: what it is of ends, as the image will go on in its place. */
static void end_processes(struct dump *dump)
{
        process_tree_kill(&dump->tree);
        memory_close(&dump->memory);
}

static int finish(struct dump *dump, double start, struct vgpu_image_report **ret_report)
{
        int r = 0;

        image_directory_close(&dump->directory);
        if (dump->options.leave_running)
                r = go_on(dump);
        else
                end_processes(dump);
        if (r < 0 || !ret_report)
                return r;
        r = image_report_dump(dump->client, dump->directory.path, &dump->manifest, &dump->data,
                              &dump->data_options, ret_report);
        if (r < 0)
                return r;
        (*ret_report)->criu_seconds = dump->criu_seconds;
        (*ret_report)->cuda_seconds = dump->cuda_seconds;
        (*ret_report)->seconds = image_now() - start;
        return 0;
}

static int dump_all(struct dump *dump, const char *directory, double start,
                    struct vgpu_image_report **ret_report)
{
        struct image_error error = { 0 };
        int r = prepare(dump);

        if (r < 0)
                return r;
        if (image_directory_begin(&dump->directory, directory, &error) < 0)
                return image_set_error(dump->client, &error);
        r = take_off(dump);
        if (r == 0)
                r = run_criu(dump);
        if (r < 0) {
                undo(dump);
                return dump->client->error.value.code;
        }
        return finish(dump, start, ret_report);
}

int vgpu_image_dump_process(struct vgpu_client *client, pid_t pid, const char *directory,
                            const struct vgpu_image_options *options,
                            struct vgpu_image_report **ret_report)
{
        struct dump *dump = calloc(1, sizeof(*dump)); /* the tree is too large for a stack */
        double start = image_now();
        int r;

        if (!dump)
                return error_set_no_memory(&client->error);
        dump->client = client;
        dump->pid = pid;
        r = image_begin(client, options, &dump->options, &dump->data_options);
        if (r == 0)
                r = dump_all(dump, directory, start, ret_report);
        vgpu_checkpoint_free(dump->checkpoint);
        vgpu_instance_list_free(dump->instances);
        image_manifest_deinit(&dump->manifest);
        (void)image_comparison_free(dump->comparison);
        free(dump);
        return r;
}
