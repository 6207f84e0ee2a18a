/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVER_LANE_H
#define MOVER_LANE_H

/*
 * A lane: a queue of tasks and the threads that run them. Tasks of different
 * lanes never wait for each other, so a checkpoint call that takes half a second
 * delays no copy. A thread is started when a task finds none idle, up to the
 * lane's number, and stays.
 */

#include <pthread.h>
#include <stdbool.h>

struct task {
        struct task *next;
        void (*run)(struct task *task); /* owns the task */
};

struct lane {
        pthread_mutex_t lock;
        pthread_cond_t has_task;
        pthread_cond_t is_idle;
        struct task *first, **last;
        unsigned int n_queued, n_threads, n_idle, n_threads_max;
        bool is_closed;
};

void lane_init(struct lane *lane, unsigned int n_threads_max);

/* lane_add() - run @task in its turn. Errors: -EAGAIN (the lane has no thread and gets none). */
int lane_add(struct lane *lane, struct task *task);

/* lane_close() - start nothing more, and wait for the tasks that have begun. The rest is left. */
void lane_close(struct lane *lane);

#endif
