/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/policy.h"

#include <errno.h>
#include <unistd.h>

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
