/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/log-limit.h"

#define INTERVAL_NS ((uint64_t)LOG_LIMIT_SECONDS * 1000000000u)

/* The entry of @user, or the one to be its. */
static struct log_limit_user *find(struct log_limit *limit, uid_t user)
{
        struct log_limit_user *oldest = &limit->user[0];

        for (int i = 0; i < LOG_LIMIT_USERS; i++) {
                struct log_limit_user *one = &limit->user[i];

                if (one->begin_ns && one->user == user)
                        return one;
                if (one->begin_ns < oldest->begin_ns)
                        oldest = one;
        }
        *oldest = (struct log_limit_user){ .user = user };
        return oldest;
}

enum log_limit_answer log_limit_take(struct log_limit *limit, uid_t user, uint64_t now_ns,
                                     uint32_t *ret_left_out)
{
        struct log_limit_user *one = find(limit, user);

        *ret_left_out = 0;
        if (one->begin_ns == 0 || now_ns - one->begin_ns >= INTERVAL_NS) {
                *ret_left_out = one->n_left_out;
                *one = (struct log_limit_user){ .user = user, .begin_ns = now_ns };
        }
        if (one->n_lines < LOG_LIMIT_LINES) {
                one->n_lines++;
                return LOG_LIMIT_WRITE;
        }
        return one->n_left_out++ == 0 ? LOG_LIMIT_FULL : LOG_LIMIT_LEAVE_OUT;
}
