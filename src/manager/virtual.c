/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/virtual.h"

#include <stdio.h>
#include <string.h>

#include "manager/manager.h"
#include "manager/publisher.h"

static bool is_called(const struct board_instance *record, const char *text)
{
        char id[16];

        snprintf(id, sizeof(id), "%u", record->id);
        return strcmp(text, id) == 0 || strcmp(text, record->uuid) == 0 ||
               strcmp(text, record->name) == 0;
}

uint32_t virtual_find(const struct manager *manager, const char *text)
{
        const struct board *board = publisher_get_board(manager->publisher);
        struct board_instance record;

        for (uint32_t slot = 0; slot < BOARD_INSTANCES_MAX; slot++)
                if (board_read_instance(board, slot, &record) && record.is_virtual &&
                    is_called(&record, text))
                        return record.id;
        return 0;
}

void virtual_set_encoder_capacity(struct manager *manager, uint32_t id, uint32_t percent)
{
        struct board *board = publisher_get_board(manager->publisher);
        struct board_instance record;

        for (uint32_t slot = 0; slot < BOARD_INSTANCES_MAX; slot++)
                if (board_read_instance(board, slot, &record) && record.is_virtual &&
                    record.id == id) {
                        record.encoder_capacity = percent;
                        board_write_instance(board, slot, &record);
                }
}
