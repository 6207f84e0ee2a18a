/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_LOG_LIMIT_H
#define DAEMON_LOG_LIMIT_H

/*
 * Limits the lines of the log that one user may cause. Anybody who can connect can provoke refusals
 * in a loop, 3,000 times a second. This fills a disk. The journal, which by default takes 10,000
 * lines in 30 seconds from a service, then drops the lines about everybody else.
 */

#include <stdint.h>
#include <sys/types.h>

#define LOG_LIMIT_LINES   250
#define LOG_LIMIT_SECONDS 10
#define LOG_LIMIT_USERS   64 /* of more, the one whose interval began first is forgotten */

struct log_limit {
        struct log_limit_user {
                uid_t user;
                uint64_t begin_ns; /* of the interval; 0: the entry is free */
                uint32_t n_lines;
                uint32_t n_left_out;
        } user[LOG_LIMIT_USERS];
};

enum log_limit_answer {
        LOG_LIMIT_WRITE,
        LOG_LIMIT_FULL, /* this is the first line too many */
        LOG_LIMIT_LEAVE_OUT,
};

/*
 * log_limit_take() - may a line about @user be written at @now_ns (not 0)?
 * @ret_left_out:  how many lines an interval that has ended left out; each interval tells it once
 */
enum log_limit_answer log_limit_take(struct log_limit *limit, uid_t user, uint64_t now_ns,
                                     uint32_t *ret_left_out);

#endif
