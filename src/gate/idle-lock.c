/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/idle-lock.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void idle_hold(void)
{
        pthread_mutex_lock(&lock);
}

bool idle_try_hold(void)
{
        return pthread_mutex_trylock(&lock) == 0;
}

void idle_release(void)
{
        pthread_mutex_unlock(&lock);
}

void idle_lock_forget(void)
{
        pthread_mutex_init(&lock, NULL);
}
