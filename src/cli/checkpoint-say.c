/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/cleanup.h"
#include "base/size.h"
#include "cli/checkpoint.h"
#include "cli/document.h"
#include "cli/operation.h"
#include "cli/say.h"

static const struct {
        enum vgpu_checkpoint_error_kind kind;
        enum exit_code code;
} exit_codes[] = {
        { VGPU_CHECKPOINT_ERROR_INVALID, EXIT_CODE_USAGE },
        { VGPU_CHECKPOINT_ERROR_NO_CUDA, EXIT_CODE_NO_CUDA },
        { VGPU_CHECKPOINT_ERROR_TIMED_OUT, EXIT_CODE_TIMED_OUT },
        { VGPU_CHECKPOINT_ERROR_LOST, EXIT_CODE_LOST },
};

static int exit_code_from(const struct vgpu_checkpoint_error *error)
{
        if (!error->is_undone)
                return EXIT_CODE_LOST;
        for (size_t i = 0; i < sizeof(exit_codes) / sizeof(exit_codes[0]); i++)
                if (exit_codes[i].kind == error->kind)
                        return (int)exit_codes[i].code;
        return EXIT_CODE_FAILED;
}

static void print_json_error(const struct vgpu_checkpoint_error *error, int code)
{
        CLEANUP(json_decrefp)
        json_t *document = json_pack(
                "{s{ss ss ss si ss si ss si ss ss sb}}", "error", "name", error->name, "message",
                error->message, "hint", error->hint, "exit_code", code, "driver_call",
                error->driver_call, "driver_code", error->driver_code, "driver_name",
                error->driver_name, "pid", (int)error->pid, "state_before",
                vgpu_checkpoint_state_get_name(error->state_before), "state_after",
                vgpu_checkpoint_state_get_name(error->state_after), "undone", error->is_undone);

        json_dumpf(document, stderr, JSON_INDENT(2));
        fputc('\n', stderr);
}

int checkpoint_say_error(const struct arguments *arguments,
                         const struct vgpu_checkpoint *checkpoint)
{
        const struct vgpu_checkpoint_error *error = vgpu_checkpoint_get_error(checkpoint);
        int code = exit_code_from(error);

        fflush(stdout);
        if (arguments->is_json) {
                print_json_error(error, code);
                return code;
        }
        fprintf(stderr, "vgpu: checkpoint %s: %s\n", arguments->words[0], error->message);
        if (*error->hint)
                fprintf(stderr, "hint: %s\n", error->hint);
        return code;
}

static json_t *from_process(const struct vgpu_checkpoint_process *process)
{
        return json_pack("{si ss ss si sf sf sf sf sI}", "pid", (int)process->pid, "state",
                         vgpu_checkpoint_state_get_name(process->state), "state_before",
                         vgpu_checkpoint_state_get_name(process->state_before), "restore_thread",
                         (int)process->restore_thread, "lock_seconds", process->lock_seconds,
                         "checkpoint_seconds", process->checkpoint_seconds, "restore_seconds",
                         process->restore_seconds, "unlock_seconds", process->unlock_seconds,
                         "bytes", (json_int_t)process->bytes);
}

static int print_json(const struct arguments *arguments,
                      const struct vgpu_checkpoint_process *const *processes, size_t n)
{
        CLEANUP(json_decrefp) json_t *array = json_array();

        for (size_t i = 0; i < n; i++)
                (void)json_array_append_new(array, from_process(processes[i]));
        return document_print(arguments, json_pack("{sO}", "processes", array));
}

int checkpoint_say_states(const struct arguments *arguments,
                          const struct vgpu_checkpoint *checkpoint)
{
        const struct vgpu_checkpoint_process *const *processes;
        size_t n;

        processes = vgpu_checkpoint_get_processes(checkpoint, &n);
        if (arguments->is_json)
                return print_json(arguments, processes, n);
        for (size_t i = 0; i < n; i++) {
                if (n > 1)
                        printf("%d ", (int)processes[i]->pid);
                puts(vgpu_checkpoint_state_get_name(processes[i]->state));
        }
        return 0;
}

int checkpoint_say_threads(const struct arguments *arguments,
                           const struct vgpu_checkpoint *checkpoint)
{
        const struct vgpu_checkpoint_process *const *processes;
        size_t n;

        processes = vgpu_checkpoint_get_processes(checkpoint, &n);
        if (arguments->is_json)
                return print_json(arguments, processes, n);
        for (size_t i = 0; i < n; i++) {
                if (n > 1)
                        printf("%d ", (int)processes[i]->pid);
                printf("%d\n", (int)processes[i]->restore_thread);
        }
        return 0;
}

static void print_done(const struct vgpu_checkpoint_process *process)
{
        const struct {
                const char *name;
                double seconds;
        } steps[] = {
                { "lock", process->lock_seconds },
                { "checkpoint", process->checkpoint_seconds },
                { "restore", process->restore_seconds },
                { "unlock", process->unlock_seconds },
        };
        char time[OPERATION_TIME_MAX], size[SIZE_TEXT_MAX];
        const char *before = ": ";

        printf("%d is %s", (int)process->pid, vgpu_checkpoint_state_get_name(process->state));
        for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
                if (steps[i].seconds <= 0)
                        continue;
                printf("%s%s %s", before, steps[i].name,
                       operation_describe_time(time, steps[i].seconds));
                before = ", ";
        }
        if (process->bytes > 0)
                printf("%s%s", before, size_format(size, process->bytes));
        putchar('\n');
}

int checkpoint_say_done(const struct arguments *arguments, const struct vgpu_checkpoint *checkpoint)
{
        const struct vgpu_checkpoint_process *const *processes;
        size_t n;

        processes = vgpu_checkpoint_get_processes(checkpoint, &n);
        if (arguments->is_json)
                return print_json(arguments, processes, n);
        for (size_t i = 0; i < n; i++)
                print_done(processes[i]);
        return 0;
}
