/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/child.h"

#include <errno.h>
#include <pthread.h>

static void start_clean(void)
{
        int saved_errno = errno;

#define FORGET(module) module##_forget();
        CHILD_FORGETS(FORGET)
#undef FORGET
        errno = saved_errno;
}

void child_watch(void)
{
        (void)pthread_atfork(NULL, NULL, start_clean);
}
