/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"

#define COLUMNS_MAX 16

void table_init(struct table *table, const struct column *columns)
{
        *table = (struct table){ .columns = columns };
        while (columns[table->n_columns].title)
                table->n_columns++;
}

void table_deinit(struct table *table)
{
        free(table->cells);
        table->cells = NULL;
        table->n_cells = table->room = 0;
}

static bool make_room(struct table *table)
{
        size_t room = table->room ? 2 * table->room : 64;
        void *cells;

        if (table->n_cells < table->room)
                return true;

        cells = reallocarray(table->cells, room, sizeof(*table->cells));
        if (!cells)
                return false;
        table->cells = cells;
        table->room = room;
        return true;
}

void table_add(struct table *table, const char *format, ...)
{
        char text[2 * TABLE_CELL_MAX];
        va_list args;

        if (!make_room(table)) {
                table->is_broken = true;
                return;
        }
        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        text_clean(table->cells[table->n_cells++], TABLE_CELL_MAX, text);
}

/* The last column is not padded: no blanks at the ends of lines. */
static void print_cell(const struct table *table, size_t column, size_t width, const char *text)
{
        size_t padding = width - text_width(text);
        bool is_last = column + 1 == table->n_columns;

        if (table->columns[column].is_number)
                printf("%*s%s", (int)padding, "", text);
        else
                printf("%s%*s", text, is_last ? 0 : (int)padding, "");
        fputs(is_last ? "\n" : "  ", stdout);
}

int table_print(const struct table *table)
{
        size_t widths[COLUMNS_MAX] = { 0 };

        if (table->is_broken)
                return -ENOMEM;

        for (size_t i = 0; i < table->n_columns; i++)
                widths[i] = text_width(table->columns[i].title);
        for (size_t i = 0; i < table->n_cells; i++) {
                size_t width = text_width(table->cells[i]);

                if (width > widths[i % table->n_columns])
                        widths[i % table->n_columns] = width;
        }

        for (size_t i = 0; i < table->n_columns; i++)
                print_cell(table, i, widths[i], table->columns[i].title);
        for (size_t i = 0; i < table->n_cells; i++)
                print_cell(table, i % table->n_columns, widths[i % table->n_columns],
                           table->cells[i]);
        return 0;
}
