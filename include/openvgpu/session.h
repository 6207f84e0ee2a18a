/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_SESSION_H
#define OPENVGPU_SESSION_H

/*
 * Session: the use of a vGPU's video encoder, or of its frame-buffer capture, by one process.
 *
 * Units:    microseconds, frames a second, pixels.
 * Threads:  see host.h.
 * Errors:   those of host.h.
 */

#include <stddef.h>
#include <stdint.h>

#include <openvgpu/base.h>
#include <openvgpu/host.h>

VGPU_BEGIN_DECLS

/* All zero without a session. */
struct vgpu_session_stats {
        uint32_t n_sessions;
        uint32_t average_fps;        /* over all sessions */
        uint32_t average_latency_us; /* per frame */
};

enum vgpu_codec {
        VGPU_CODEC_H264 = 0,
        VGPU_CODEC_HEVC = 1,
        VGPU_CODEC_AV1 = 2,
        VGPU_CODEC_UNKNOWN = 255,
};

struct vgpu_encoder_session {
        uint32_t id, pid, instance;
        enum vgpu_codec codec;
        uint32_t width, height;
        uint32_t average_fps, average_latency_us; /* over the last second */
};

struct vgpu_encoder_session_list {
        size_t n_sessions;
        const struct vgpu_encoder_session *const *sessions;
};

enum vgpu_capture_kind {
        VGPU_CAPTURE_UNKNOWN = 0,
        VGPU_CAPTURE_TO_SYSTEM = 1, /* to host memory */
        VGPU_CAPTURE_CUDA = 2,
        VGPU_CAPTURE_VIDEO = 3,
        VGPU_CAPTURE_ENCODER = 4,
};

/* Bits of a capture session's flags. */
enum vgpu_capture_flag {
        VGPU_CAPTURE_DIFFERENCE_MAP = 1,
        VGPU_CAPTURE_CLASSIFICATION_MAP = 2,
        VGPU_CAPTURE_NO_WAIT = 4,
        VGPU_CAPTURE_WAIT_FOREVER = 8,
        VGPU_CAPTURE_WAIT_WITH_TIMEOUT = 16,
};

/* Before its first frame, a session's size and averages are 0. */
struct vgpu_capture_session {
        uint32_t id, pid, instance;
        uint32_t display; /* number of the display */
        enum vgpu_capture_kind kind;
        uint32_t flags; /* of enum vgpu_capture_flag */
        uint32_t max_width, max_height;
        uint32_t width, height;
        uint32_t average_fps, average_latency_us;
};

struct vgpu_capture_session_list {
        size_t n_sessions;
        const struct vgpu_capture_session *const *sessions;
};

/* "h264", "cuda"; "unknown" for any other number. Never freed. */
const char *vgpu_codec_get_name(enum vgpu_codec codec);
const char *vgpu_capture_kind_get_name(enum vgpu_capture_kind kind);

/* Get the use of the encoder, and of the capture. Free the result with vgpu_free(). */
int vgpu_session_lookup_encoder_stats(struct vgpu_host *host, uint32_t instance,
                                      struct vgpu_session_stats **ret_stats);
int vgpu_session_lookup_capture_stats(struct vgpu_host *host, uint32_t instance,
                                      struct vgpu_session_stats **ret_stats);

/* Get the sessions of each process. Free the list with vgpu_free(). */
int vgpu_session_lookup_encoders(struct vgpu_host *host, uint32_t instance,
                                 struct vgpu_encoder_session_list **ret_list);
int vgpu_session_lookup_captures(struct vgpu_host *host, uint32_t instance,
                                 struct vgpu_capture_session_list **ret_list);

VGPU_END_DECLS

#endif
