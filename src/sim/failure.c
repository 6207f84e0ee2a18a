/* SPDX-License-Identifier: Apache-2.0 */
/* Failures on demand: the n-th call of a name answers a code. */

#include "sim/failure.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sim/call.h"

#define FAILURES_MAX 32

static struct {
        pthread_once_t once;
        size_t n;
        struct {
                enum call_name name;
                unsigned int at; /* 1: the first call */
                CUresult result;
        } failure[FAILURES_MAX];
        atomic_uint calls[CALL_COUNT];
} failures = { .once = PTHREAD_ONCE_INIT };

static void add(const char *name, unsigned int at, CUresult result)
{
        for (unsigned int i = 0; i < CALL_COUNT && failures.n < FAILURES_MAX; i++) {
                if (strcmp(call_entries[i].name, name) != 0)
                        continue;
                failures.failure[failures.n].name = i;
                failures.failure[failures.n].at = at;
                failures.failure[failures.n].result = result;
                failures.n++;
                return;
        }
        (void)fprintf(stderr, "simulated CUDA driver: %s: no function \"%s\" to fail\n",
                      FAILURE_VARIABLE, name);
}

/* NAME@N=CODE, which is cut to pieces; false: it is something else. */
static bool add_entry(char *entry)
{
        char *at = strchr(entry, '@'), *is = at ? strchr(at, '=') : NULL, *end, *result_end;
        unsigned long number, result;

        if (!is)
                return false;
        *at++ = '\0';
        *is++ = '\0';
        number = strtoul(at, &end, 10);
        result = strtoul(is, &result_end, 10);
        if (end == at || *end || result_end == is || *result_end)
                return false;
        add(entry, (unsigned int)number, (CUresult)result);
        return true;
}

static void read_variable(void)
{
        const char *text = getenv(FAILURE_VARIABLE); /* NOLINT(concurrency-mt-unsafe) */
        CLEANUP(freep) char *copy = text ? strdup(text) : NULL;
        char *rest = NULL;

        for (char *entry = copy ? strtok_r(copy, ",", &rest) : NULL; entry;
             entry = strtok_r(NULL, ",", &rest))
                if (!add_entry(entry))
                        (void)fprintf(stderr,
                                      "simulated CUDA driver: %s: \"%s\" is not NAME@N=CODE\n",
                                      FAILURE_VARIABLE, entry);
}

CUresult failure_next(enum call_name name)
{
        unsigned int at;

        (void)pthread_once(&failures.once, read_variable);
        if (failures.n == 0)
                return CUDA_SUCCESS;
        at = atomic_fetch_add(&failures.calls[name], 1) + 1;
        for (size_t i = 0; i < failures.n; i++)
                if (failures.failure[i].name == name && failures.failure[i].at == at)
                        return failures.failure[i].result;
        return CUDA_SUCCESS;
}
