/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/crew.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

struct crew {
        size_t n_tasks;
        atomic_size_t next;
        void (*run)(void *data, size_t task, unsigned int member);
        void *data;
};

struct member {
        struct crew *crew;
        unsigned int number;
        pthread_t thread;
        bool has_thread;
};

unsigned int crew_get_size(void)
{
        static unsigned int size; /* processors come and go; buffers of members are made once */
        long n;

        if (size > 0)
                return size;
        n = sysconf(_SC_NPROCESSORS_ONLN);
        size = n < 1 ? 1 : n > CREW_MAX ? CREW_MAX : (unsigned int)n;
        return size;
}

static void *work(void *data)
{
        struct member *member = data;
        struct crew *crew = member->crew;
        size_t task;

        while ((task = atomic_fetch_add(&crew->next, 1)) < crew->n_tasks)
                crew->run(crew->data, task, member->number);
        return NULL;
}

void crew_run(size_t n_tasks, void (*run)(void *data, size_t task, unsigned int member), void *data)
{
        struct crew crew = { .n_tasks = n_tasks, .run = run, .data = data };
        struct member members[CREW_MAX];
        unsigned int n = crew_get_size();

        if (n > n_tasks)
                n = (unsigned int)n_tasks;
        for (unsigned int i = 0; i < n; i++)
                members[i] = (struct member){ .crew = &crew, .number = i };
        for (unsigned int i = 1; i < n; i++)
                members[i].has_thread =
                        pthread_create(&members[i].thread, NULL, work, &members[i]) == 0;
        if (n > 0)
                (void)work(&members[0]);
        for (unsigned int i = 1; i < n; i++)
                if (members[i].has_thread)
                        (void)pthread_join(members[i].thread, NULL);
}
