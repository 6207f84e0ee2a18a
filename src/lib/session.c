/* SPDX-License-Identifier: Apache-2.0 */
#include <openvgpu/session.h>

#include "lib/answer.h"

static const char *const codec_names[] = {
        [VGPU_CODEC_H264] = "h264",
        [VGPU_CODEC_HEVC] = "hevc",
        [VGPU_CODEC_AV1] = "av1",
};

static const char *const capture_kind_names[] = {
        [VGPU_CAPTURE_TO_SYSTEM] = "to-system",
        [VGPU_CAPTURE_CUDA] = "cuda",
        [VGPU_CAPTURE_VIDEO] = "video",
        [VGPU_CAPTURE_ENCODER] = "encoder",
};

const char *vgpu_codec_get_name(enum vgpu_codec codec)
{
        return HOST_NAME(codec_names, codec);
}

const char *vgpu_capture_kind_get_name(enum vgpu_capture_kind kind)
{
        return HOST_NAME(capture_kind_names, kind);
}

static int make_stats(struct vgpu_host *host, unsigned int sessions, unsigned int fps,
                      unsigned int latency_us, struct vgpu_session_stats **ret_stats)
{
        struct vgpu_session_stats *stats = malloc(sizeof(*stats));

        if (!stats)
                return host_set_no_memory(host);
        *stats = (struct vgpu_session_stats){ sessions, fps, latency_us };
        *ret_stats = stats;
        return 0;
}

int vgpu_session_lookup_encoder_stats(struct vgpu_host *host, uint32_t instance,
                                      struct vgpu_session_stats **ret_stats)
{
        unsigned int sessions = 0, fps = 0, latency_us = 0;
        int r;

        r = HOST_CALL(host, ABOUT_INSTANCE(instance), nvmlVgpuInstanceGetEncoderStats, instance,
                      &sessions, &fps, &latency_us);
        return r < 0 ? r : make_stats(host, sessions, fps, latency_us, ret_stats);
}

int vgpu_session_lookup_capture_stats(struct vgpu_host *host, uint32_t instance,
                                      struct vgpu_session_stats **ret_stats)
{
        nvmlFBCStats_t stats = { .sessionsCount = 0 };
        int r;

        r = HOST_CALL(host, ABOUT_INSTANCE(instance), nvmlVgpuInstanceGetFBCStats, instance,
                      &stats);
        return r < 0 ? r
                     : make_stats(host, stats.sessionsCount, stats.averageFPS, stats.averageLatency,
                                  ret_stats);
}

int vgpu_session_lookup_encoders(struct vgpu_host *host, uint32_t instance,
                                 struct vgpu_encoder_session_list **ret_list)
{
        CLEANUP(growing_deinit) struct growing sessions = GROWING(nvmlEncoderSessionInfo_t, 0);
        struct vgpu_encoder_session_list *list;
        const nvmlEncoderSessionInfo_t *from;
        struct vgpu_encoder_session *to, **pointers;
        int r;

        do
                r = HOST_CALL(host, ABOUT_INSTANCE(instance), nvmlVgpuInstanceGetEncoderSessions,
                              instance, &sessions.count, sessions.items);
        while (growing_again(host, &sessions, &r));
        if (r < 0)
                return r;

        list = answer_records(host, sizeof(*list), sessions.count, sizeof(*to), &to, &pointers);
        if (!list)
                return -ENOMEM;
        from = sessions.items;
        for (unsigned int i = 0; i < sessions.count; i++)
                to[i] = (struct vgpu_encoder_session){ .id = from[i].sessionId,
                                                       .pid = from[i].pid,
                                                       .instance = from[i].vgpuInstance,
                                                       .codec = (enum vgpu_codec)from[i].codecType,
                                                       .width = from[i].hResolution,
                                                       .height = from[i].vResolution,
                                                       .average_fps = from[i].averageFps,
                                                       .average_latency_us =
                                                               from[i].averageLatency };
        list->n_sessions = sessions.count;
        list->sessions = (const void *)pointers;
        *ret_list = list;
        return 0;
}

int vgpu_session_lookup_captures(struct vgpu_host *host, uint32_t instance,
                                 struct vgpu_capture_session_list **ret_list)
{
        CLEANUP(growing_deinit) struct growing sessions = GROWING(nvmlFBCSessionInfo_t, 0);
        struct vgpu_capture_session_list *list;
        const nvmlFBCSessionInfo_t *from;
        struct vgpu_capture_session *to, **pointers;
        int r;

        do
                r = HOST_CALL(host, ABOUT_INSTANCE(instance), nvmlVgpuInstanceGetFBCSessions,
                              instance, &sessions.count, sessions.items);
        while (growing_again(host, &sessions, &r));
        if (r < 0)
                return r;

        list = answer_records(host, sizeof(*list), sessions.count, sizeof(*to), &to, &pointers);
        if (!list)
                return -ENOMEM;
        from = sessions.items;
        for (unsigned int i = 0; i < sessions.count; i++)
                to[i] = (struct vgpu_capture_session){
                        .id = from[i].sessionId,
                        .pid = from[i].pid,
                        .instance = from[i].vgpuInstance,
                        .display = from[i].displayOrdinal,
                        .kind = (enum vgpu_capture_kind)from[i].sessionType,
                        .flags = from[i].sessionFlags,
                        .max_width = from[i].hMaxResolution,
                        .max_height = from[i].vMaxResolution,
                        .width = from[i].hResolution,
                        .height = from[i].vResolution,
                        .average_fps = from[i].averageFPS,
                        .average_latency_us = from[i].averageLatency
                };
        list->n_sessions = sessions.count;
        list->sessions = (const void *)pointers;
        *ret_list = list;
        return 0;
}
