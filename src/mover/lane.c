/* SPDX-License-Identifier: Apache-2.0 */
#include "mover/lane.h"

#include <stddef.h>

void lane_init(struct lane *lane, unsigned int n_threads_max)
{
        *lane = (struct lane){ .lock = PTHREAD_MUTEX_INITIALIZER,
                               .has_task = PTHREAD_COND_INITIALIZER,
                               .is_idle = PTHREAD_COND_INITIALIZER,
                               .n_threads_max = n_threads_max };
        lane->last = &lane->first;
}

static struct task *pop(struct lane *lane)
{
        struct task *task = lane->first;

        lane->first = task->next;
        if (!lane->first)
                lane->last = &lane->first;
        lane->n_queued--;
        return task;
}

static void *run_tasks(void *data)
{
        struct lane *lane = data;

        pthread_mutex_lock(&lane->lock);
        for (;;) {
                struct task *task;

                while (!lane->first || lane->is_closed) {
                        lane->n_idle++;
                        pthread_cond_signal(&lane->is_idle);
                        pthread_cond_wait(&lane->has_task, &lane->lock);
                        lane->n_idle--;
                }
                task = pop(lane);
                pthread_mutex_unlock(&lane->lock);
                task->run(task);
                pthread_mutex_lock(&lane->lock);
        }
        return NULL;
}

/* With the lock held. */
static int start_thread(struct lane *lane)
{
        pthread_t thread;
        int r;

        if (lane->n_queued <= lane->n_idle || lane->n_threads == lane->n_threads_max)
                return 0;

        r = pthread_create(&thread, NULL, run_tasks, lane);
        if (r == 0) {
                pthread_detach(thread);
                lane->n_threads++;
        }
        return lane->n_threads > 0 ? 0 : -r;
}

int lane_add(struct lane *lane, struct task *task)
{
        int r;

        pthread_mutex_lock(&lane->lock);
        lane->n_queued++;
        r = start_thread(lane);
        if (r == 0) {
                task->next = NULL;
                *lane->last = task;
                lane->last = &task->next;
                pthread_cond_signal(&lane->has_task);
        } else {
                lane->n_queued--;
        }
        pthread_mutex_unlock(&lane->lock);
        return r;
}

void lane_close(struct lane *lane)
{
        pthread_mutex_lock(&lane->lock);
        lane->is_closed = true;
        while (lane->n_idle < lane->n_threads)
                pthread_cond_wait(&lane->is_idle, &lane->lock);
        pthread_mutex_unlock(&lane->lock);
}
