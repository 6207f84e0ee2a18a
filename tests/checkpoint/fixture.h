/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CHECKPOINT_FIXTURE_H
#define TESTS_CHECKPOINT_FIXTURE_H

/*
 * The public library and its helper against processes with the simulated driver: real processes, and
 * every answer as the real driver gives it.
 */

#include <openvgpu/checkpoint.h>

#include "base/cleanup.h"
#include "base/test.h"
#include "sim/test-target.h"

DEFINE_CLEANUP(struct vgpu_checkpoint *, vgpu_checkpoint_free);

static inline struct vgpu_checkpoint *fixture_new(pid_t pid)
{
        struct vgpu_checkpoint *checkpoint = NULL;

        assert_int_equal(vgpu_checkpoint_new(&checkpoint, pid), 0);
        return checkpoint;
}

static inline void assert_state(struct vgpu_checkpoint *checkpoint,
                                enum vgpu_checkpoint_state expected)
{
        enum vgpu_checkpoint_state state = VGPU_CHECKPOINT_STATE_UNKNOWN;

        assert_int_equal(vgpu_checkpoint_get_state(checkpoint, &state), 0);
        assert_int_equal(state, expected);
}

/* Checks @r and the error of the last call; the message must name the process and the reason. */
static inline const struct vgpu_checkpoint_error *
assert_failed(struct vgpu_checkpoint *checkpoint, int r, enum vgpu_checkpoint_error_kind kind)
{
        const struct vgpu_checkpoint_error *error = vgpu_checkpoint_get_error(checkpoint);

        if (error->kind != kind)
                (void)fprintf(stderr, "kind %d: %s\n", (int)error->kind, error->message);
        assert_int_equal(error->kind, kind);
        assert_true(r < 0);
        assert_int_equal(error->code, r);
        assert_true(*error->message && *error->name);
        return error;
}

static inline void fixture_write(const char *path, const char *text)
{
        FILE *file = fopen(path, "we");

        assert_non_null(file);
        (void)fputs(text, file);
        (void)fclose(file);
}

#endif
