/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top-graph.h"

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

void top_graph_make(const struct top_graph *graph, char (*lines)[TOP_TEXT_MAX], size_t n,
                    size_t width)
{
        struct plot plot;

        if (n == 0)
                return;
        make_plot(&plot, graph, width < TOP_WIDTH_MAX ? width : TOP_WIDTH_MAX);
        for (size_t row = 0; row + 1 < n; row++)
                put_row(lines[row], &plot, graph->entitled, row, n - 1);
        put_times(lines[n - 1], &plot, graph->delay);
}
