/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top-graph.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define AXIS "%5s |"

/* Columns of the axis, and what is left of a line for samples. */
#define AXIS_WIDTH 7

struct plot {
        size_t n_columns, n_per_column;      /* samples of which a column has the mean */
        double columns[TOP_HISTORY_SAMPLES]; /* percent; less than 0: none */
};

/* All of the history fits, be it that a column has several samples. */
static void make_plot(struct plot *plot, const struct top_graph *graph, size_t width)
{
        size_t room = width > AXIS_WIDTH ? width - AXIS_WIDTH : 1;

        plot->n_per_column = (TOP_HISTORY_SAMPLES + room - 1) / room;
        plot->n_columns = TOP_HISTORY_SAMPLES / plot->n_per_column;
        for (size_t i = 0; i < plot->n_columns; i++) {
                size_t first = TOP_HISTORY_SAMPLES - (plot->n_columns - i) * plot->n_per_column;
                double sum = 0;
                size_t n = 0;

                for (size_t k = first; k < first + plot->n_per_column; k++)
                        if (graph->percents[k] != TOP_HISTORY_NONE) {
                                sum += graph->percents[k];
                                n++;
                        }
                plot->columns[i] = n > 0 ? sum / (double)n : -1;
        }
}

/* What a column has between two percentages. */
static char get_cell(double value, double entitled, double low, double high)
{
        if (value >= high)
                return '#';
        if (value > low)
                return value > low + (high - low) / 2 ? ':' : '.';
        if (entitled > low && entitled <= high)
                return '-';
        return value >= 0 && low == 0 ? '_' : ' ';
}

static void put_row(char *line, const struct plot *plot, double entitled, size_t row, size_t n_rows)
{
        double high = 100.0 * (double)(n_rows - row) / (double)n_rows;
        double low = 100.0 * (double)(n_rows - row - 1) / (double)n_rows;
        const char *label = row == 0                  ? "100%"
                            : row == n_rows - 1       ? "0%"
                            : row == (n_rows - 1) / 2 ? "50%"
                                                      : "";
        int at = snprintf(line, TOP_TEXT_MAX, AXIS, label);

        for (size_t i = 0; i < plot->n_columns && at < TOP_TEXT_MAX - 1; i++)
                line[at++] = get_cell(plot->columns[i], entitled, low, high);
        line[at] = '\0';
}

static void put_times(char *line, const struct plot *plot, double delay)
{
        double seconds = delay * (double)(plot->n_columns * plot->n_per_column);
        char since[32];
        int room;

        if (seconds >= 120)
                (void)snprintf(since, sizeof(since), "%.0f min ago", seconds / 60);
        else
                (void)snprintf(since, sizeof(since), "%.0f s ago", seconds);
        room = (int)plot->n_columns - (int)strlen(since);
        if (room < 4)
                (void)snprintf(line, TOP_TEXT_MAX, "%*s", AXIS_WIDTH + (int)plot->n_columns, "now");
        else
                (void)snprintf(line, TOP_TEXT_MAX, "%*s%s%*s", AXIS_WIDTH, "", since, room, "now");
}

/* Turns. */

#define STRIP_LINES 2

/* A graph needs that many lines of its own beside a strip. */
#define GRAPH_LINES_MIN 4

static uint64_t get_start(const struct vgpu_time_sharing_entry *turn)
{
        return turn->timestamp_ns > turn->run_ns ? turn->timestamp_ns - turn->run_ns : 0;
}

/* What a turn had of the time from @from to @until, in ns. */
static uint64_t get_overlap(const struct vgpu_time_sharing_entry *turn, uint64_t from,
                            uint64_t until)
{
        uint64_t start = get_start(turn) > from ? get_start(turn) : from;
        uint64_t end = turn->timestamp_ns < until ? turn->timestamp_ns : until;

        return end > start ? end - start : 0;
}

/* Who had most of a column. */
static char get_owner(const struct top_graph *graph, uint64_t from, uint64_t until)
{
        uint64_t own = 0, others = 0;

        for (size_t i = 0; i < graph->turns->n_entries; i++) {
                const struct vgpu_time_sharing_entry *turn = graph->turns->entries[i];

                *(turn->id == graph->id ? &own : &others) += get_overlap(turn, from, until);
        }
        if (2 * (own + others) < until - from)
                return ' ';
        return own >= others ? '#' : 'o';
}

static void put_strip(char (*lines)[TOP_TEXT_MAX], const struct top_graph *graph, size_t width)
{
        const struct vgpu_time_sharing_entry *const *turns = graph->turns->entries;
        size_t n = graph->turns->n_entries, room = width > AXIS_WIDTH ? width - AXIS_WIDTH : 1;
        uint64_t start = get_start(turns[0]), end = turns[n - 1]->timestamp_ns;
        uint64_t span = end > start ? end - start : 1;
        int at = snprintf(lines[0], TOP_TEXT_MAX, AXIS, "turns");

        for (size_t i = 0; i < room && at < TOP_TEXT_MAX - 1; i++)
                lines[0][at++] =
                        get_owner(graph, start + span * i / room, start + span * (i + 1) / room);
        lines[0][at] = '\0';
        (void)snprintf(lines[1], TOP_TEXT_MAX, "%*s%zu turns in %.2f s: # its own, o others'",
                       AXIS_WIDTH, "", n, (double)span / 1e9);
}

static bool has_strip(const struct top_graph *graph, size_t n)
{
        return graph->turns && graph->turns->n_entries > 0 && n >= GRAPH_LINES_MIN + STRIP_LINES;
}

void top_graph_make(const struct top_graph *graph, char (*lines)[TOP_TEXT_MAX], size_t n,
                    size_t width)
{
        struct plot plot;

        if (n == 0)
                return;
        width = width < TOP_WIDTH_MAX ? width : TOP_WIDTH_MAX;
        if (has_strip(graph, n)) {
                n -= STRIP_LINES;
                put_strip(lines + n, graph, width);
        }
        make_plot(&plot, graph, width);
        for (size_t row = 0; row + 1 < n; row++)
                put_row(lines[row], &plot, graph->entitled, row, n - 1);
        put_times(lines[n - 1], &plot, graph->delay);
}
