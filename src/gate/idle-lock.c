/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/idle-lock.h"

#include <pthread.h>

#include "gate/section.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int n_ending; /* calls that may end a context; under the lock */

void idle_hold(void)
{
        pthread_mutex_lock(&lock);
}

bool idle_try_hold(void)
{
        if (section_try_lock(&lock) != 0)
                return false;
        if (n_ending == 0)
                return true;
        idle_release();
        return false;
}

void idle_pause(void)
{
        idle_hold();
        n_ending++;
        idle_release();
}

void idle_unpause(void)
{
        idle_hold();
        n_ending--;
}

bool idle_is_paused(void)
{
        return n_ending > 0;
}

void idle_release(void)
{
        pthread_mutex_unlock(&lock);
}

void idle_lock_forget(void)
{
        pthread_mutex_init(&lock, NULL);
        n_ending = 0;
}
