/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/orphans.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "channels/plan.h"
#include "wire/keeper.h"

static bool has_prefix(const char *label, const char *prefix)
{
        return strncmp(label, prefix, strlen(prefix)) == 0;
}

static bool is_of_a_plan(const char *label)
{
        return has_prefix(label, KEEPER_PLAN) || has_prefix(label, KEEPER_PROCESS);
}

/* From the end: when one is taken, the last takes its place. */
void orphans_take(struct fd_table *orphans, struct fd_table *table)
{
        for (size_t i = table->n; i-- > 0;) {
                char label[KEEPER_LABEL_MAX];
                int fd;

                memcpy(label, table->entries[i].label, sizeof(label));
                if (is_of_a_plan(label) && fd_table_take(table, label, &fd) == 0 &&
                    fd_table_put(orphans, label, fd) < 0)
                        fd_close(fd);
        }
}

/* What cannot be read is no plan, and one without its descriptor cannot be carried out, ever. */
static bool let_on(const struct fd_table *orphans, const char *process, int plan_fd)
{
        int fd = fd_table_find(orphans, process);
        struct plan plan;

        return fd < 0 || plan_read(plan_fd, &plan) < 0 || plan_undo(&plan, fd) == 0;
}

/* From the end: what takes the place of one that is dropped has been looked at. */
void orphans_let_on(struct fd_table *orphans)
{
        bool is_any_left = false;

        for (size_t i = orphans->n; i-- > 0;) {
                char label[KEEPER_LABEL_MAX], process[KEEPER_LABEL_MAX + sizeof(KEEPER_PROCESS)];

                if (i >= orphans->n || !has_prefix(orphans->entries[i].label, KEEPER_PLAN))
                        continue;
                memcpy(label, orphans->entries[i].label, sizeof(label));
                snprintf(process, sizeof(process), KEEPER_PROCESS "%s",
                         label + strlen(KEEPER_PLAN));
                if (!let_on(orphans, process, orphans->entries[i].fd)) {
                        is_any_left = true;
                        continue;
                }
                (void)fd_table_drop(orphans, label);
                (void)fd_table_drop(orphans, process);
        }
        if (!is_any_left)
                fd_table_deinit(orphans); /* and descriptors without their plan */
}
