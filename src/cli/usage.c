/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/usage.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openvgpu/device.h>

#include "base/size.h"
#include "base/text.h"
#include "cli/document.h"
#include "cli/say.h"
#include "cli/table.h"

DEFINE_CLEANUP(struct vgpu_device_list *, vgpu_device_list_free);

/* What the table and the CSV have in common: which columns come first depends on the group. */
static const struct group {
        const char *name;
        enum vgpu_usage_group group;
        struct column columns[10];
        const char *csv;
} groups[] = {
        { "tenant", VGPU_USAGE_BY_TENANT, { { "TENANT", false } }, "tenant,user" },
        { "vgpu",
          VGPU_USAGE_BY_VGPU,
          { { "VGPU", false }, { "TENANT", false } },
          "vgpu,vgpu_uuid,tenant,user" },
        { "process",
          VGPU_USAGE_BY_PROCESS,
          { { "PID", true },
            { "PROGRAM", false },
            { "VGPU", false },
            { "TENANT", false },
            { "STARTED", false },
            { "ENDED", false } },
          "pid,name,started,ended,vgpu,vgpu_uuid,tenant,user" },
        { "device",
          VGPU_USAGE_BY_DEVICE,
          { { "GPU", true }, { "DEVICE", false } },
          "device_name,device_uuid" },
        { "job",
          VGPU_USAGE_BY_JOB,
          { { "JOB", false }, { "TENANT", false }, { "PEAK MEMORY", true } },
          "job,tenant,user,memory_peak" },
        { "container",
          VGPU_USAGE_BY_CONTAINER,
          { { "CONTAINER", false }, { "ID", false }, { "TENANT", false }, { "PEAK MEMORY", true } },
          "container_name,container,tenant,user,memory_peak" },
        { "part",
          VGPU_USAGE_BY_PART,
          { { "VGPU", false }, { "TENANT", false }, { "GPU", true }, { "DEVICE", false } },
          "vgpu,vgpu_uuid,tenant,user,device_name,device_uuid" },
};

/* Behind them, for a narrow terminal, the UUID of a device. */
static const struct column sums[] = {
        { "GPU SECONDS", true }, { "ENCODER", true }, { "QUOTA GiB h", true },
        { "USED GiB h", true },  { "UUID", false },   { NULL, false },
};

static bool is_of_devices(const struct group *group)
{
        return group->group == VGPU_USAGE_BY_DEVICE || group->group == VGPU_USAGE_BY_PART;
}

static size_t count_columns(const struct column *columns)
{
        size_t n = 0;

        while (columns[n].title)
                n++;
        return n;
}

/* The table. */

static void add_sums(struct table *table, const struct vgpu_usage_row *row)
{
        table_add(table, "%.3f", row->seconds->gpu);
        table_add(table, "%.3f", row->seconds->encoder);
        table_add(table, "%.3f", row->quota_gib_hours);
        table_add(table, "%.3f", row->used_gib_hours);
}

/* What vGPUs were called of which there were several, one after another or of several users; sorted. */
struct names {
        const char **of;
        size_t n;
};

static void names_deinit(struct names *names)
{
        free(names->of);
}

static int compare_vgpus(const void *a, const void *b)
{
        const struct vgpu_usage_row *one = *(const struct vgpu_usage_row *const *)a;
        const struct vgpu_usage_row *other = *(const struct vgpu_usage_row *const *)b;
        int difference = strcmp(one->vgpu, other->vgpu);

        return difference ? difference : strcmp(one->vgpu_uuid, other->vgpu_uuid);
}

static int compare_name(const void *name, const void *of)
{
        return strcmp(name, *(const char *const *)of);
}

static int find_names(struct names *names, const struct vgpu_usage_list *list)
{
        CLEANUP(freep) const struct vgpu_usage_row **rows = calloc(list->n_rows + 1, sizeof(*rows));

        names->of = calloc(list->n_rows + 1, sizeof(*names->of));
        if (!rows || !names->of)
                return -ENOMEM;
        for (size_t i = 0; i < list->n_rows; i++)
                rows[i] = list->rows[i];
        qsort(rows, list->n_rows, sizeof(*rows), compare_vgpus);
        for (size_t i = 1; i < list->n_rows; i++)
                if (strcmp(rows[i]->vgpu, rows[i - 1]->vgpu) == 0 &&
                    strcmp(rows[i]->vgpu_uuid, rows[i - 1]->vgpu_uuid) != 0)
                        names->of[names->n++] = rows[i]->vgpu;
        return 0;
}

static void add_vgpu(struct table *table, const struct names *names,
                     const struct vgpu_usage_row *row)
{
        if (*row->vgpu_uuid &&
            bsearch(row->vgpu, names->of, names->n, sizeof(*names->of), compare_name))
                table_add(table, "%s (%.8s)", row->vgpu, row->vgpu_uuid);
        else
                table_add(table, "%s", row->vgpu);
}

static void add_process(struct table *table, const struct names *names,
                        const struct vgpu_usage_row *row)
{
        char user[USAGE_USER_MAX], when[USAGE_TIME_MAX];

        table_add(table, "%d", row->pid);
        table_add(table, "%s", row->name);
        add_vgpu(table, names, row);
        table_add(table, "%s", usage_format_user(user, row->tenant));
        table_add(table, "%s", usage_format_time(when, row->started));
        table_add(table, "%s", usage_format_time(when, row->ended));
}

static void add_job(struct table *table, const struct vgpu_usage_row *row)
{
        char user[USAGE_USER_MAX], size[SIZE_TEXT_MAX];

        table_add(table, "%s", row->job);
        table_add(table, "%s", usage_format_user(user, row->tenant));
        table_add(table, "%s", size_format(size, row->memory_peak));
}

static void add_container(struct table *table, const struct vgpu_usage_row *row)
{
        char user[USAGE_USER_MAX], size[SIZE_TEXT_MAX];

        table_add(table, "%s", row->container_name);
        table_add(table, "%s", row->container);
        table_add(table, "%s", usage_format_user(user, row->tenant));
        table_add(table, "%s", size_format(size, row->memory_peak));
}

/* @devices: that are there now, or NULL. One that is gone has no index. */
static void add_device(struct table *table, const struct vgpu_device_list *devices,
                       const struct vgpu_usage_row *row)
{
        const struct vgpu_device *found = NULL;

        for (size_t i = 0; devices && i < devices->n_devices; i++)
                if (strcmp(devices->devices[i]->uuid, row->device_uuid) == 0)
                        found = devices->devices[i];
        if (found)
                table_add(table, "%u", found->index);
        else
                table_add(table, "-");
        table_add(table, "%s", row->device_name);
}

static void add_row(struct table *table, const struct group *group,
                    const struct vgpu_device_list *devices, const struct names *names,
                    const struct vgpu_usage_row *row)
{
        char user[USAGE_USER_MAX];

        if (group->group == VGPU_USAGE_BY_PROCESS) {
                add_process(table, names, row);
        } else if (group->group == VGPU_USAGE_BY_DEVICE) {
                add_device(table, devices, row);
        } else if (group->group == VGPU_USAGE_BY_JOB) {
                add_job(table, row);
        } else if (group->group == VGPU_USAGE_BY_CONTAINER) {
                add_container(table, row);
        } else {
                if (group->group != VGPU_USAGE_BY_TENANT)
                        add_vgpu(table, names, row);
                table_add(table, "%s", usage_format_user(user, row->tenant));
                if (group->group == VGPU_USAGE_BY_PART)
                        add_device(table, devices, row);
        }
        add_sums(table, row);
        if (is_of_devices(group))
                table_add(table, "%s", row->device_uuid);
}

static void add_total(struct table *table, const struct group *group,
                      const struct vgpu_usage_list *list)
{
        struct vgpu_usage_seconds seconds = { 0 };
        struct vgpu_usage_row total = { .seconds = &seconds };

        for (size_t i = 0; i < list->n_rows; i++) {
                seconds.gpu += list->rows[i]->seconds->gpu;
                seconds.encoder += list->rows[i]->seconds->encoder;
                total.quota_gib_hours += list->rows[i]->quota_gib_hours;
                total.used_gib_hours += list->rows[i]->used_gib_hours;
        }
        table_add(table, "total");
        for (size_t i = 1; i < count_columns(group->columns); i++)
                table_add(table, "%s", "");
        add_sums(table, &total);
        if (is_of_devices(group))
                table_add(table, "%s", "");
}

static int print_table(const struct group *group, const struct vgpu_usage_list *list,
                       const struct vgpu_device_list *devices)
{
        struct column columns[sizeof(group->columns) / sizeof(group->columns[0]) + 8];
        size_t n = count_columns(group->columns);
        CLEANUP(table_deinitp) struct table table;
        CLEANUP(names_deinit) struct names names = { 0 };
        int r = find_names(&names, list);

        if (r < 0)
                return r;
        memcpy(columns, group->columns, n * sizeof(*columns));
        memcpy(columns + n, sums, sizeof(sums));
        if (!is_of_devices(group))
                columns[n + count_columns(sums) - 1] = (struct column){ NULL, false };
        table_init(&table, columns);
        for (size_t i = 0; i < list->n_rows; i++)
                add_row(&table, group, devices, &names, list->rows[i]);
        if (list->n_rows > 1)
                add_total(&table, group, list);
        return table_print(&table);
}

/* CSV as in RFC 4180, but with the lines of this system. */

static void print_text(const char *text)
{
        char clean[512];

        text_clean(clean, sizeof(clean), text);
        if (!strpbrk(clean, ",\"")) {
                fputs(clean, stdout);
                return;
        }
        putchar('"');
        for (const char *c = clean; *c; c++)
                printf(*c == '"' ? "\"\"" : "%c", *c);
        putchar('"');
}

static void print_texts(const char *const *texts, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                print_text(texts[i]);
                putchar(',');
        }
}

static void print_key(const struct group *group, const struct vgpu_usage_row *row)
{
        char user[USAGE_USER_MAX];

        if (group->group == VGPU_USAGE_BY_DEVICE) {
                print_texts((const char *const[]){ row->device_name, row->device_uuid }, 2);
                return;
        }
        if (group->group == VGPU_USAGE_BY_JOB || group->group == VGPU_USAGE_BY_CONTAINER) {
                if (group->group == VGPU_USAGE_BY_JOB)
                        print_texts((const char *const[]){ row->job }, 1);
                else
                        print_texts((const char *const[]){ row->container_name, row->container },
                                    2);
                printf("%u,", row->tenant);
                print_texts((const char *const[]){ usage_format_user(user, row->tenant) }, 1);
                printf("%" PRIu64 ",", row->memory_peak);
                return;
        }
        if (group->group == VGPU_USAGE_BY_PROCESS) {
                printf("%d,", row->pid);
                print_texts((const char *const[]){ row->name }, 1);
                printf("%.3f,%.3f,", row->started, row->ended);
        }
        if (group->group != VGPU_USAGE_BY_TENANT)
                print_texts((const char *const[]){ row->vgpu, row->vgpu_uuid }, 2);
        printf("%u,", row->tenant);
        print_texts((const char *const[]){ usage_format_user(user, row->tenant) }, 1);
        if (group->group == VGPU_USAGE_BY_PART)
                print_texts((const char *const[]){ row->device_name, row->device_uuid }, 2);
}

static void print_csv(const struct group *group, const struct vgpu_usage_list *list)
{
        printf("%s,gpu_seconds,memory_seconds,encoder_seconds,decoder_seconds,jpeg_seconds,"
               "ofa_seconds,quota_gib_hours,used_gib_hours\n",
               group->csv);
        for (size_t i = 0; i < list->n_rows; i++) {
                const struct vgpu_usage_row *row = list->rows[i];

                print_key(group, row);
                printf("%.9f,%.9f,%.9f,%.9f,%.9f,%.9f,%.9f,%.9f\n", row->seconds->gpu,
                       row->seconds->memory, row->seconds->encoder, row->seconds->decoder,
                       row->seconds->jpeg, row->seconds->ofa, row->quota_gib_hours,
                       row->used_gib_hours);
        }
}

/* The command. */

static int get_time(const struct arguments *arguments, const char *name, double *ret_seconds)
{
        const char *text = arguments_get(arguments, name);
        struct timespec now;

        if (!text)
                return 0;
        (void)clock_gettime(CLOCK_REALTIME, &now);
        if (usage_parse_time(ret_seconds, text, (double)now.tv_sec) == 0)
                return 0;
        return say_usage(arguments, "2026-11-01, '2026-11-01 09:30', today, or 7d (ago)",
                         "--%s: '%s' is no time", name, text);
}

static int get_options(const struct arguments *arguments, struct vgpu_usage_options *options,
                       const struct group **ret_group)
{
        const char *by = arguments_get(arguments, "by");
        int r;

        if (arguments->is_json && arguments_get(arguments, "csv"))
                return say_usage(arguments, "choose one", "--csv and --json exclude each other");
        r = get_time(arguments, "since", &options->since);
        if (r == 0)
                r = get_time(arguments, "until", &options->until);
        if (r != 0)
                return r;
        *ret_group = &groups[1];
        for (size_t i = 0; by && i < sizeof(groups) / sizeof(groups[0]); i++) {
                *ret_group = &groups[i];
                if (strcmp(groups[i].name, by) == 0)
                        break;
                *ret_group = NULL;
        }
        if (!*ret_group)
                return say_usage(arguments, "tenant, vgpu, part, process, device, job or container",
                                 "usage cannot be summed up by '%s'", by);
        options->group = (*ret_group)->group;
        return 0;
}

static int run_usage(const struct arguments *arguments, struct vgpu_client *client)
{
        struct vgpu_usage_options options = VGPU_USAGE_OPTIONS_INIT;
        CLEANUP(vgpu_usage_list_freep) struct vgpu_usage_list *list = NULL;
        CLEANUP(vgpu_device_list_freep) struct vgpu_device_list *devices = NULL;
        const struct group *group;
        int r;

        r = get_options(arguments, &options, &group);
        if (r != 0)
                return r;
        if (vgpu_usage_lookup(client, &options, &list) < 0)
                return say_error(arguments, client);
        if (options.group == VGPU_USAGE_BY_DEVICE || options.group == VGPU_USAGE_BY_PART)
                (void)vgpu_device_lookup_all(client, &devices); /* only for their indices */
        if (arguments->is_json)
                return document_print(arguments, usage_document_rows(list, options.group));
        if (arguments_get(arguments, "csv"))
                print_csv(group, list);
        else if (print_table(group, list, devices) < 0)
                return say_failure(arguments, EXIT_CODE_FAILED, "OutOfMemory", "", "out of memory");
        return 0;
}

static const struct option options[] = {
        { .name = "since",
          .argument = "TIME",
          .help = "2026-11-01, '2026-11-01 09:30', today, 7d (default: all that the ledger has)" },
        { .name = "until", .argument = "TIME", .help = "the end, not included (default: now)" },
        { .name = "by",
          .argument = "WHAT",
          .help = "tenant, vgpu (the default), part, process, device, job, container" },
        { .name = "csv", .help = "print comma-separated values, with a line of titles" },
        { .name = NULL },
};

const struct command command_usage = {
        .name = "usage",
        .usage = "[--since TIME] [--until TIME] [--by WHAT] [--csv]",
        .summary = "show what was used and by whom: what to bill",
        .description =
                "Sums up the ledger, in which vgpud records use by the minute. Root sees the use of\n"
                "all users; other users see their own.\n"
                "\n"
                "  GPU SECONDS   seconds in which kernels ran\n"
                "  ENCODER       seconds in which the video encoder ran\n"
                "  QUOTA GiB h   frame buffer that was set aside, times the hours\n"
                "  USED GiB h    frame buffer that programs held, times the hours\n"
                "\n"
                "By part, a vGPU of several devices has a row for each of them. Of vGPUs with the\n"
                "same name the table shows the beginning of the UUID, --csv and --json all of it.\n"
                "By job, it sums up the vGPUs that Slurm's plugin made (docs/slurm.md), with the most\n"
                "memory that one of the job's programs held. By container, it sums up programs that\n"
                "ran in containers; the quota of their vGPU is in no such row.\n"
                "\n"
                "Times are local, and whole minutes count. 7d, 12h and 30m mean that long ago.\n",
        .examples = "vgpu usage --since 7d --by tenant\n"
                    "vgpu usage --since today --csv > usage.csv\n",
        .options = options,
        .n_words_max = 0,
        .word = "",
        .run = run_usage,
};
