/* SPDX-License-Identifier: Apache-2.0 */
/* Failures on demand: the n-th call of a name answers a code. */

#include "sim/failure.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sim/call-entry.h"

#define FAILURES_MAX 32

struct failure {
        enum call_name name;
        unsigned int at; /* 1: the first call; 0: each */
        CUresult result;
        bool is_late; /* it does what it should, and answers that all the same */
};

static struct {
        pthread_once_t once;
        size_t n;
        struct failure failure[FAILURES_MAX];
        atomic_uint calls[CALL_COUNT];
} failures = { .once = PTHREAD_ONCE_INIT };

/* The failure of the file, and how often its function was called since the file is there. */
static struct {
        pthread_mutex_t lock;
        const char *path; /* NULL: nobody named one */
        struct stat seen;
        struct failure failure;
        unsigned int calls;
} armed = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool find_name(enum call_name *ret_name, const char *name)
{
        for (unsigned int i = 0; i < CALL_COUNT; i++)
                if (strcmp(call_entries[i].name, name) == 0) {
                        *ret_name = i;
                        return true;
                }
        (void)fprintf(stderr, "simulated CUDA driver: %s: no function \"%s\" to fail\n",
                      FAILURE_VARIABLE, name);
        return false;
}

/* NAME@N=CODE, which is cut to pieces; false: it is something else. */
static bool parse_entry(struct failure *failure, char *entry)
{
        char *at = strchr(entry, '@'), *is = at ? strchr(at, '=') : NULL, *end, *result_end;
        unsigned long number, result;

        if (!is)
                return false;
        *at++ = '\0';
        *is++ = '\0';
        failure->is_late = *is == '+';
        number = strtoul(at, &end, 10);
        result = strtoul(is, &result_end, 10);
        if (end == at || *end || result_end == is || *result_end)
                return false;
        failure->at = (unsigned int)number;
        failure->result = (CUresult)result;
        return find_name(&failure->name, entry);
}

static void read_variables(void)
{
        const char *text = getenv(FAILURE_VARIABLE);
        CLEANUP(freep) char *copy = text ? strdup(text) : NULL;
        char *rest = NULL;

        armed.path = getenv(FAILURE_FILE_VARIABLE);
        for (char *entry = copy ? strtok_r(copy, ",", &rest) : NULL; entry;
             entry = strtok_r(NULL, ",", &rest)) {
                if (failures.n < FAILURES_MAX && parse_entry(&failures.failure[failures.n], entry))
                        failures.n++;
                else
                        (void)fprintf(stderr,
                                      "simulated CUDA driver: %s: \"%s\" is not NAME@N=CODE\n",
                                      FAILURE_VARIABLE, entry);
        }
}

static bool is_same(const struct stat *a, const struct stat *b)
{
        return a->st_ino == b->st_ino && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
               a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static bool read_file(void)
{
        CLEANUP(fd_closep) int fd = open(armed.path, O_RDONLY | O_CLOEXEC);
        char text[128];
        ssize_t n;

        if (fd < 0 || fstat(fd, &armed.seen) < 0)
                return false;
        armed.calls = 0;
        n = read(fd, text, sizeof(text) - 1);
        text[n > 0 ? n : 0] = '\0';
        text[strcspn(text, "\n")] = '\0';
        return parse_entry(&armed.failure, text);
}

/* Whoever removes the file fails: of several processes that come to it, one does. */
static bool armed_next(enum call_name name, struct failure *ret_failure)
{
        bool is_due = false;
        struct stat status;

        (void)pthread_mutex_lock(&armed.lock);
        if (stat(armed.path, &status) == 0 && (is_same(&status, &armed.seen) || read_file()) &&
            armed.failure.name == name && ++armed.calls == armed.failure.at &&
            unlink(armed.path) == 0) {
                *ret_failure = armed.failure;
                is_due = true;
        }
        (void)pthread_mutex_unlock(&armed.lock);
        return is_due;
}

static bool find_next(enum call_name name, struct failure *ret_failure)
{
        unsigned int at;

        (void)pthread_once(&failures.once, read_variables);
        if (armed.path && *armed.path && armed_next(name, ret_failure))
                return true;
        if (failures.n == 0)
                return false;
        at = atomic_fetch_add(&failures.calls[name], 1) + 1;
        for (size_t i = 0; i < failures.n; i++)
                if (failures.failure[i].name == name &&
                    (failures.failure[i].at == at || failures.failure[i].at == 0)) {
                        *ret_failure = failures.failure[i];
                        return true;
                }
        return false;
}

CUresult failure_next(enum call_name name, CUresult *ret_late)
{
        struct failure failure;

        *ret_late = CUDA_SUCCESS;
        if (!find_next(name, &failure))
                return CUDA_SUCCESS;
        if (!failure.is_late)
                return failure.result;
        *ret_late = failure.result;
        return CUDA_SUCCESS;
}
