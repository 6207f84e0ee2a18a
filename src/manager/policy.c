/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/policy.h"

#include <errno.h>
#include <unistd.h>

#include "base/size.h"
#include "manager/instance.h"
#include "manager/manager.h"

bool policy_is_operator(uid_t uid)
{
        return uid == 0 || uid == geteuid();
}

int policy_check_share(uid_t uid, struct failure *failure)
{
        if (policy_is_operator(uid))
                return 0;
        return failure_set(
                failure, -EPERM, "PermissionDenied",
                "create it without one, and have them run 'vgpu share' on it",
                "only root and the user of vgpud give a vGPU a share of a device's time");
}

static int check_frame_buffer(uint64_t limit, uint64_t has, uint64_t wants, struct failure *failure)
{
        char limit_text[SIZE_TEXT_MAX], has_text[SIZE_TEXT_MAX], wants_text[SIZE_TEXT_MAX];

        if (limit == 0 || (has <= limit && wants <= limit - has))
                return 0;
        size_format(limit_text, limit);
        size_format(has_text, has);
        return failure_set(
                failure, -EDQUOT, "NoRoom",
                "ask for less, remove one (vgpu ls -l), or ask who runs vgpud for more "
                "(--user-frame-buffer)",
                "the vGPUs of one user may have %s together: yours have %s, and %s more is too much",
                limit_text, has_text, size_format(wants_text, wants));
}

int policy_check_limits(const struct manager *manager, uid_t uid, uint64_t frame_buffer,
                        struct failure *failure)
{
        const struct options *options = manager->options;
        const struct instance *instance;
        uint32_t n_all = 0, n = 0;
        uint64_t bytes = 0;

        list_for_each(instance, &manager->instances, link) {
                n_all++;
                if (instance->owner == uid) {
                        n++;
                        bytes += instance->frame_buffer;
                }
        }
        if (n_all >= BOARD_INSTANCES_MAX)
                return failure_set(failure, -EMFILE, "NoRoom", "remove one that is not needed",
                                   "there are %d vGPUs already", BOARD_INSTANCES_MAX);
        if (policy_is_operator(uid))
                return 0;
        if (options->user_vgpus && n >= options->user_vgpus)
                return failure_set(
                        failure, -EDQUOT, "NoRoom",
                        "remove one that is not needed (vgpu ls -l), or ask who runs vgpud "
                        "for more (--user-vgpus)",
                        "one user may have %u vGPUs: you have %u", options->user_vgpus, n);
        return check_frame_buffer(options->user_frame_buffer, bytes, frame_buffer, failure);
}
