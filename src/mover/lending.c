/* SPDX-License-Identifier: Apache-2.0 */
#include "mover/lending.h"

#include <stdlib.h>

struct lending *lending_new(pid_t pid, enum mover_call call)
{
        struct lending *lending = malloc(sizeof(*lending));

        if (lending)
                *lending = (struct lending){ .pid = pid, .call = call };
        return lending;
}

struct lending *lending_free(struct lending *lending)
{
        free(lending);
        return NULL;
}

void lending_begin(struct lendings *lendings, struct lending *lending)
{
        pthread_mutex_lock(&lendings->lock);
        lending->next = lendings->first;
        lendings->first = lending;
        pthread_mutex_unlock(&lendings->lock);
}

static struct lending *remove_locked(struct lendings *lendings, pid_t pid, enum mover_call call)
{
        struct lending **place = &lendings->first, *lending;

        while ((lending = *place) && (lending->pid != pid || lending->call != call))
                place = &lending->next;
        if (lending)
                *place = lending->next;
        return lending;
}

struct lending *lending_end(struct lendings *lendings, pid_t pid, enum mover_call call)
{
        struct lending *lending;

        pthread_mutex_lock(&lendings->lock);
        lending = remove_locked(lendings, pid, call);
        pthread_mutex_unlock(&lendings->lock);
        return lending;
}
