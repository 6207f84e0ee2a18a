/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CHECKPOINT_DEATHS_H
#define TESTS_CHECKPOINT_DEATHS_H

/* Points at which helper, caller or target die, for the tests of what is left then. */

#include "tests/checkpoint/fixture.h"

struct point {
        const char *name;
        bool is_resume;
        enum vgpu_checkpoint_state after; /* of the target, when the helper has died there */
};

static inline int act(struct vgpu_checkpoint *checkpoint, const struct point *point)
{
        return point->is_resume ? vgpu_checkpoint_resume(checkpoint, NULL)
                                : vgpu_checkpoint_suspend(checkpoint, NULL);
}

static inline void set_fault(const struct point *point, const char *action)
{
        char text[96];

        (void)snprintf(text, sizeof(text), "%s=%s", point->name, action);
        (void)setenv("OPENVGPU_FAULT", text, 1);
        (void)setenv("OPENVGPU_FAULT_DIR", test_directory, 1);
}

static inline void prepare(struct vgpu_checkpoint *checkpoint, const struct point *point)
{
        print_message("%s\n", point->name);
        if (point->is_resume)
                assert_int_equal(vgpu_checkpoint_suspend(checkpoint, NULL), 0);
}

/* @path: of the file that says so. */
static inline void wait_paused(char *path, size_t room, const struct point *point)
{
        (void)snprintf(path, room, "%s/%s", test_directory, point->name);
        while (access(path, F_OK) < 0)
                (void)usleep(1000);
}

#endif
