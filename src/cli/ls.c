/* SPDX-License-Identifier: Apache-2.0 */
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <openvgpu/manager.h>

#include "base/size.h"
#include "base/text.h"
#include "cli/document.h"
#include "cli/duration.h"
#include "cli/instance-devices.h"
#include "cli/ls-choice.h"
#include "cli/program-container.h"
#include "cli/say.h"
#include "cli/table.h"

DEFINE_CLEANUP(struct vgpu_manager *, vgpu_manager_free);

#define WATCH_SECONDS   1
#define WATCH_ANSWER_MS 2000 /* a manager that hangs must not hang the screen for long */

static const struct column columns[] = {
        { "NAME", false }, { "DEVICE", true },       { "STATE", false },    { "SHARE", true },
        { "USE", true },   { "FRAME BUFFER", true }, { "PROCESSES", true }, { NULL, false },
};

static const struct column long_columns[] = {
        { "NAME", false },  { "DEVICE", true },       { "STATE", false },    { "SHARE", true },
        { "USE", true },    { "FRAME BUFFER", true }, { "PROCESSES", true }, { "LIVES", false },
        { "OWNER", false }, { "CREATED", false },     { "LEAVES", false },   { "UUID", false },
        { NULL, false },
};

static const struct column process_columns[] = {
        { "VGPU", false },   { "PID", true },      { "PROGRAM", false }, { "MEMORY", true },
        { "MOVABLE", true }, { "LAUNCHES", true }, { NULL, false },
};

static const struct column container_columns[] = {
        { "VGPU", false },   { "PID", true },      { "PROGRAM", false },   { "MEMORY", true },
        { "MOVABLE", true }, { "LAUNCHES", true }, { "CONTAINER", false }, { NULL, false },
};

static void add_long(struct table *table, const struct vgpu_instance *instance,
                     const struct vgpu_device_list *devices)
{
        const struct passwd *user = getpwuid(instance->owner);
        time_t created = (time_t)instance->created_seconds;
        char when[32] = "?", after[DURATION_TEXT_MAX];
        struct tm local;

        table_add(table, "%s", instance->is_transient ? "as its program" : "until rm");
        if (user)
                table_add(table, "%s", user->pw_name);
        else
                table_add(table, "%u", instance->owner);
        if (localtime_r(&created, &local))
                strftime(when, sizeof(when), "%Y-%m-%d %H:%M", &local);
        table_add(table, "%s", when);
        if (instance->idle_after > 0)
                table_add(table, "idle %s%s", duration_format(after, instance->idle_after),
                          instance->idle_keeps_context ? ", context stays" : "");
        else
                table_add(table, "%s%s",
                          instance_devices_are_overcommitted(instance, devices)
                                  ? "when others need the GPU"
                                  : "by command",
                          instance->idle_keeps_context ? ", context stays" : "");
        table_add(table, "%s", instance->uuid);
}

/* With what it does by itself, and where its memory is. */
static void add_state(struct table *table, const struct vgpu_instance *instance)
{
        const char *state = vgpu_instance_state_get_name(instance->state);
        const char *place = instance->spilled_memory > 0 ? ", on disk" : "";

        if (instance->demand[0] && instance->demand_percent > 0)
                table_add(table, "%s, %u %%", instance->demand, instance->demand_percent);
        else if (instance->demand[0])
                table_add(table, "%s%s", instance->demand, place);
        else if (instance->idle >= 1)
                table_add(table, "%s, idle %.0f s", state, instance->idle);
        else
                table_add(table, "%s%s", state, place);
}

static void add_percent(struct table *table, int percent)
{
        if (percent < 0)
                table_add(table, "-");
        else
                table_add(table, "%d %%", percent);
}

static void add(struct table *table, const struct ls_choice *found,
                const struct vgpu_instance *instance)
{
        char used[SIZE_TEXT_MAX], quota[SIZE_TEXT_MAX], devices[INSTANCE_DEVICES_MAX];

        table_add(table, "%s", instance->name);
        if (instance->state == VGPU_INSTANCE_SUSPENDED)
                table_add(table, "-"); /* it is on no device */
        else
                table_add(table, "%s", instance_devices_format(devices, instance));
        add_state(table, instance);
        add_percent(table, instance->share ? (int)instance->share : -1);
        add_percent(table, ls_choice_get_use(found, instance));
        size_format(quota, instance->frame_buffer);
        if (instance->n_parts > 1)
                table_add(table, "%s / %zu x %s", size_format(used, instance->frame_buffer_used),
                          instance->n_parts, quota);
        else
                table_add(table, "%s / %s", size_format(used, instance->frame_buffer_used), quota);
        table_add(table, "%zu", instance->n_processes);
}

static const char *find_container(struct container *container, const struct vgpu_process *process)
{
        return program_container_find(container, process->pid, process->container_name);
}

static void add_processes(struct table *table, const struct vgpu_instance *instance,
                          bool has_containers)
{
        struct container container;

        for (size_t i = 0; i < instance->n_processes; i++) {
                const struct vgpu_process *process = instance->processes[i];
                char used[SIZE_TEXT_MAX], movable[SIZE_TEXT_MAX];
                const char *name = find_container(&container, process);

                table_add(table, "%s", instance->name);
                table_add(table, "%d", process->pid);
                table_add(table, "%s", process->name);
                table_add(table, "%s", size_format(used, process->memory_used));
                table_add(table, "%s", size_format(movable, process->memory_movable));
                table_add(table, "%llu", (unsigned long long)process->n_launches);
                if (has_containers)
                        table_add(table, "%s", name ? name : "-");
        }
}

static bool has_containers(const struct ls_choice *found)
{
        struct container container;

        for (size_t i = 0; i < found->n; i++)
                for (size_t k = 0; k < found->instances[i]->n_processes; k++)
                        if (find_container(&container, found->instances[i]->processes[k]))
                                return true;
        return false;
}

/* Why one stays that should leave, or does not come in. */
static void print_reasons(const struct ls_choice *found)
{
        char clean[256];

        for (size_t i = 0; i < found->n; i++)
                if (found->instances[i]->demand_reason[0])
                        printf("%s: %s\n", found->instances[i]->name,
                               text_clean(clean, sizeof(clean),
                                          found->instances[i]->demand_reason));
}

static void print_outside(const struct ls_choice *found)
{
        char clean[256];

        for (size_t i = 0; i < found->n; i++)
                if (found->instances[i]->outside[0])
                        printf("%s: %s; see docs/security.md\n", found->instances[i]->name,
                               text_clean(clean, sizeof(clean), found->instances[i]->outside));
}

/* As after a start of vgpud with other GPUs, real or simulated. */
static void print_gone(const struct ls_choice *found)
{
        char clean[64];

        for (size_t i = 0; i < found->n; i++)
                if (found->instances[i]->gone[0])
                        printf("%s: this vgpud has no %s, where it was\n",
                               found->instances[i]->name,
                               text_clean(clean, sizeof(clean), found->instances[i]->gone));
}

/* A program whose kernels the device cannot interrupt is a danger for itself and for its neighbours. */
static void print_unwhole_process(const char *name, const struct vgpu_process *process)
{
        bool has_reason = process->context_reason[0] != '\0';

        printf("%s: since a restore the GPU cannot interrupt the kernels of process %d%s%s%s: a long one "
               "keeps others waiting, and ends after 4 s; restart it, or see docs/limits.md\n",
               name, process->pid, has_reason ? " (" : "", process->context_reason,
               has_reason ? ")" : "");
}

static void print_unwhole(const struct ls_choice *found)
{
        for (size_t i = 0; i < found->n; i++) {
                const struct vgpu_instance *instance = found->instances[i];

                for (size_t k = 0; k < instance->n_processes; k++)
                        if (strcmp(instance->processes[k]->context, "unwhole") == 0)
                                print_unwhole_process(instance->name, instance->processes[k]);
        }
}

/* A scenario's vGPUs are of NVML alone: without a word the list would look as if there were none. */
static void say_none(struct vgpu_client *client)
{
        CLEANUP(vgpu_manager_freep) struct vgpu_manager *manager = NULL;

        if (vgpu_manager_lookup(client, &manager) == 0 && manager->scenario[0])
                fprintf(stderr,
                        "vgpu: ls: this vgpud plays a scenario, whose vGPUs only NVML shows\n"
                        "hint: 'vgpu nvml utilization' lists them, 'vgpu show ID' shows one\n");
        else if (isatty(STDOUT_FILENO))
                fprintf(stderr, "no vGPU yet; create one: vgpu create NAME --fb 40G\n");
}

static int print_tables(struct vgpu_client *client, const struct ls_choice *found, bool is_long)
{
        CLEANUP(vgpu_device_list_freep) struct vgpu_device_list *devices = NULL;
        CLEANUP(table_deinitp) struct table table, processes;
        bool in_containers = is_long && has_containers(found);
        int r;

        if (is_long && found->n > 0)
                (void)vgpu_device_lookup_all(client, &devices); /* if not, they are unknown */
        table_init(&table, is_long ? long_columns : columns);
        table_init(&processes, in_containers ? container_columns : process_columns);
        for (size_t i = 0; i < found->n; i++) {
                add(&table, found, found->instances[i]);
                if (!is_long)
                        continue;
                add_long(&table, found->instances[i], devices);
                add_processes(&processes, found->instances[i], in_containers);
        }

        r = table_print(&table);
        if (r == 0) {
                print_reasons(found);
                print_unwhole(found);
                print_outside(found);
                print_gone(found);
        }
        if (r == 0 && processes.n_cells > 0) {
                putchar('\n');
                r = table_print(&processes);
        }
        if (r == 0 && found->all && found->all->n_instances == 0)
                say_none(client);
        return r;
}

/* One table, or why there is none. An error is that of the first one, or that the vGPU is gone. */
static int show_again(const struct arguments *arguments, struct vgpu_client *client, bool is_first)
{
        CLEANUP(ls_choice_deinit) struct ls_choice found = { 0 };
        int r = ls_choice_find(&found, arguments, client, true);

        if (r > 0 || (r == 0 && found.code != 0))
                return r > 0 ? r : found.code;
        if (r < 0 && (is_first || vgpu_client_get_error(client)->kind == VGPU_ERROR_NO_SUCH_VGPU))
                return say_error(arguments, client);
        if (isatty(STDOUT_FILENO))
                fputs("\033[H\033[2J", stdout); /* home, and clear */
        else if (!is_first)
                putchar('\n');
        if (r < 0)
                printf("%s; trying again\n", vgpu_client_get_error(client)->message);
        else if (print_tables(client, &found, arguments_get(arguments, "long") != NULL) < 0)
                return say_failure(arguments, EXIT_CODE_FAILED, "OutOfMemory", "", "out of memory");
        return 0;
}

static int watch(const struct arguments *arguments, struct vgpu_client *client)
{
        const struct timespec pause = { .tv_sec = WATCH_SECONDS };
        int r;

        if (arguments->is_json || arguments_get(arguments, "names"))
                return say_usage(arguments, "leave out one of them",
                                 "--watch goes neither with --json nor with --names");
        vgpu_client_set_timeout_ms(client, WATCH_ANSWER_MS);
        for (bool is_first = true;; is_first = false) {
                r = show_again(arguments, client, is_first);
                if (r != 0 || fflush(stdout) != 0) /* the reader has gone */
                        return r;
                (void)nanosleep(&pause, NULL);
        }
}

static int print(const struct arguments *arguments, struct vgpu_client *client,
                 const struct ls_choice *found)
{
        if (arguments->is_json)
                return document_print(arguments,
                                      document_from_instances(found->instances, found->n));
        if (arguments_get(arguments, "names")) {
                for (size_t i = 0; i < found->n; i++)
                        puts(found->instances[i]->name);
                return 0;
        }
        if (print_tables(client, found, arguments_get(arguments, "long") != NULL) < 0)
                return say_failure(arguments, EXIT_CODE_FAILED, "OutOfMemory", "", "out of memory");
        return 0;
}

static int run_ls(const struct arguments *arguments, struct vgpu_client *client)
{
        bool has_use = !arguments->is_json && !arguments_get(arguments, "names");
        CLEANUP(ls_choice_deinit) struct ls_choice found = { 0 };
        int r;

        if (arguments_get(arguments, "watch"))
                return watch(arguments, client);
        r = ls_choice_find(&found, arguments, client, has_use);
        if (r != 0)
                return r > 0 ? r : say_error(arguments, client);
        r = print(arguments, client, &found);
        return found.code != 0 ? found.code : r;
}

static const struct option options[] = {
        { .name = "long", .letter = 'l', .help = "show more about each vGPU, and its programs" },
        { .name = "state", .argument = "STATE", .help = LS_CHOICE_STATES_HELP },
        { .name = "device",
          .argument = "DEVICE",
          .help = "only those that are on it: index, UUID or beginning of a UUID" },
        { .name = "owner", .argument = "USER", .help = "only those of this user" },
        { .name = "sort", .argument = "KEY", .help = LS_CHOICE_SORT_HELP },
        { .name = "names", .help = "print only the names, one per line, for scripts" },
        { .name = "watch", .help = "print them anew each second, until Ctrl-C" },
        { .name = NULL },
};

const struct command command_ls = {
        .name = "ls",
        .usage = "[NAME]... [-l] [--state STATE] [--device DEVICE] [--owner USER] [--sort KEY] "
                 "[--names | --watch]",
        .summary = "list vGPUs: their GPUs, states, use and memory",
        .description =
                "Lists all vGPUs, those that are named, or those that the options choose.\n"
                "\n"
                "  STATE         idle (has no program), running, suspending, suspended,\n"
                "                evicted (memory off the GPU, context still on it),\n"
                "                resuming, migrating, failed. With 'vgpu idle': how long it has\n"
                "                had no work; 'away': it left its GPU by itself;\n"
                "                'coming in, 40 %': so much of its memory is there\n"
                "  SHARE         what 'vgpu share' promises it of its GPU's time\n"
                "  USE           how much of its GPU's time it uses now; 'vgpu top' shows more\n"
                "  FRAME BUFFER  the memory that its programs hold / its quota; '2 x 60 GiB':\n"
                "                the quota on each of two GPUs\n"
                "  MOVABLE       the memory that suspend moves at the speed of the bus; the\n"
                "                driver moves the rest, which is slower\n",
        .examples = "vgpu ls -l\n"
                    "vgpu ls train --json\n"
                    "vgpu ls --state running --sort memory\n",
        .options = options,
        .n_words_max = COMMAND_WORDS_ANY,
        .word = "name of the vGPU",
        .run = run_ls,
};
