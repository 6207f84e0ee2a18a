/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"

#define COLUMNS_MAX 16
#define GAP         "  "
#define MARK        "..."

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

/* Of a terminal; of all else there is none. */
static size_t get_edge(void)
{
        struct winsize size = { 0 };

        if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
                return SIZE_MAX;
        return size.ws_col > 0 ? size.ws_col : SIZE_MAX;
}

/* So much of each line stays whatever the terminal: a number that lacks digits is another one. */
static size_t get_kept(const struct table *table, const size_t *widths)
{
        size_t kept = 0, at = 0;

        for (size_t i = 0; i < table->n_columns; i++) {
                at += widths[i];
                if (i == 0 || table->columns[i].is_number)
                        kept = at;
                at += strlen(GAP);
        }
        return kept;
}

static void pad(FILE *line, size_t n)
{
        fprintf(line, "%*s", (int)n, "");
}

static void write_row(const struct table *table, const size_t *widths,
                      char (*const cells)[TABLE_CELL_MAX], FILE *line)
{
        for (size_t i = 0; i < table->n_columns; i++) {
                const char *text = cells ? cells[i] : table->columns[i].title;
                size_t padding = widths[i] - text_width(text);

                pad(line, table->columns[i].is_number ? padding : 0);
                fputs(text, line);
                pad(line, table->columns[i].is_number ? 0 : padding);
                if (i + 1 < table->n_columns)
                        fputs(GAP, line);
        }
}

static void trim(char *line)
{
        size_t length = strlen(line);

        while (length > 0 && line[length - 1] == ' ')
                line[--length] = '\0';
}

/* As systemctl(1) does, and with a mark. */
static void cut(char *line, size_t edge)
{
        size_t at = 0, n = 0;

        if (text_width(line) <= edge)
                return;
        while (n + strlen(MARK) < edge)
                n += (line[++at] & 0xc0) != 0x80;
        strcpy(line + at, MARK);
}

static int print_row(const struct table *table, const size_t *widths,
                     char (*const cells)[TABLE_CELL_MAX])
{
        CLEANUP(freep) char *line = NULL;
        size_t size, edge = get_edge(), kept = get_kept(table, widths);
        FILE *stream = open_memstream(&line, &size);

        if (!stream)
                return -ENOMEM;
        write_row(table, widths, cells, stream);
        if (fclose(stream) != 0)
                return -ENOMEM;
        trim(line);
        cut(line, edge > kept + strlen(MARK) ? edge : SIZE_MAX);
        puts(line);
        return 0;
}

int table_print(const struct table *table)
{
        size_t widths[COLUMNS_MAX] = { 0 };
        int r;

        if (table->is_broken)
                return -ENOMEM;

        for (size_t i = 0; i < table->n_columns; i++)
                widths[i] = text_width(table->columns[i].title);
        for (size_t i = 0; i < table->n_cells; i++) {
                size_t width = text_width(table->cells[i]);

                if (width > widths[i % table->n_columns])
                        widths[i % table->n_columns] = width;
        }

        r = print_row(table, widths, NULL);
        for (size_t i = 0; r == 0 && i + table->n_columns <= table->n_cells; i += table->n_columns)
                r = print_row(table, widths, &table->cells[i]);
        return r;
}
