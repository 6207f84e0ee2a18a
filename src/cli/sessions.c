/* SPDX-License-Identifier: Apache-2.0 */
#include <openvgpu/session.h>

#include "cli/host.h"

static const struct column columns[] = {
        { "VGPU", false },   { "ID", true },  { "SESSION", true },    { "USE", false },
        { "KIND", false },   { "PID", true }, { "RESOLUTION", true }, { "FRAMES/S", true },
        { "LATENCY", true }, { NULL, false },
};

/* Both sorts of session, as far as they are alike. */
struct row {
        const char *use, *kind;
        uint32_t id, pid, width, height, fps, latency_us;
};

static void add_row(struct listing *listing, const char *name, uint32_t instance,
                    const struct row *row)
{
        table_add(&listing->table, "%s", name);
        table_add(&listing->table, "%u", instance);
        table_add(&listing->table, "%u", row->id);
        table_add(&listing->table, "%s", row->use);
        table_add(&listing->table, "%s", row->kind);
        table_add(&listing->table, "%u", row->pid);
        table_add(&listing->table, "%ux%u", row->width, row->height);
        table_add(&listing->table, "%u", row->fps);
        table_add(&listing->table, "%u us", row->latency_us);
        json_array_append_new(listing->array,
                              json_pack("{ss sI si ss ss si si si si si}", "name", name, "id",
                                        (json_int_t)instance, "session", row->id, "use", row->use,
                                        "kind", row->kind, "pid", row->pid, "width", row->width,
                                        "height", row->height, "average_fps", row->fps,
                                        "average_latency_us", row->latency_us));
}

static int add(struct vgpu_host *host, uint32_t device, uint32_t instance, const char *name,
               struct listing *listing)
{
        CLEANUP(freep) struct vgpu_encoder_session_list *encoders = NULL;
        CLEANUP(freep) struct vgpu_capture_session_list *captures = NULL;
        int r;
        (void)device;

        r = vgpu_session_lookup_encoders(host, instance, &encoders);
        if (r == 0)
                r = vgpu_session_lookup_captures(host, instance, &captures);
        if (r < 0)
                return r;
        for (size_t i = 0; i < encoders->n_sessions; i++) {
                const struct vgpu_encoder_session *from = encoders->sessions[i];
                const struct row row = { .use = "encoder",
                                         .kind = vgpu_codec_get_name(from->codec),
                                         .id = from->id,
                                         .pid = from->pid,
                                         .width = from->width,
                                         .height = from->height,
                                         .fps = from->average_fps,
                                         .latency_us = from->average_latency_us };

                add_row(listing, name, instance, &row);
        }
        for (size_t i = 0; i < captures->n_sessions; i++) {
                const struct vgpu_capture_session *from = captures->sessions[i];
                const struct row row = { .use = "capture",
                                         .kind = vgpu_capture_kind_get_name(from->kind),
                                         .id = from->id,
                                         .pid = from->pid,
                                         .width = from->width,
                                         .height = from->height,
                                         .fps = from->average_fps,
                                         .latency_us = from->average_latency_us };

                add_row(listing, name, instance, &row);
        }
        return 0;
}

static int run_sessions(const struct arguments *arguments, struct vgpu_client *client)
{
        return host_list_instances(arguments, client, columns, "sessions", add);
}

static const struct option options[] = {
        HOST_OPTION_DEVICE,
        { .name = NULL },
};

const struct command command_sessions = {
        .name = "nvml sessions",
        .usage = "[NAME] [--device DEVICE]",
        .summary = "list sessions that encode video or capture the frame buffer",
        .description =
                "Lists the encoder and frame-buffer-capture sessions of all active vGPUs, or of one\n"
                "vGPU.\n"
                "\n"
                "  KIND      the codec of an encoder session, the destination of a capture\n"
                "  FRAMES/S  and LATENCY: averages over the last second\n",
        .examples = "vgpu nvml sessions\n",
        .options = options,
        .n_words_max = 1,
        .word = "name of the vGPU",
        .run = run_sessions,
};
