/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top-screen.h"

#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"

/* Pairs of colours; without colours they are all the same. */
enum { PAIR_NORMAL, PAIR_BUSY, PAIR_FULL, PAIR_WARNING };

#define BUSY_PERCENT 10
#define FULL_PERCENT 85

/* As many as fit, from the first. */
static const char *const keys[] = {
        "q quit",    "h help",  "s suspend",      "r resume",
        "+ - share", "g graph", "u m e t n sort", "p programs",
};

static const char *const help[] = {
        "up, down, page up, page down   choose a vGPU or a program",
        "s   suspend the chosen vGPU: off its GPU, its programs wait",
        "r   resume it",
        "+ - give it 5 % more or less of the GPU's time; for root",
        "g   a graph of the chosen vGPU's last minutes, the latest turns below it, and back",
        "u m e t n   sort by GPU use, memory, encoder, GPU time, name",
        "p   show programs, or only vGPUs",
        "h   this, and back",
        "q   quit",
        "",
        "ENTITL   percent of the GPU's time that it can count on",
        "USE   percent that it got",
        "MEM, ENC, DEC, JPEG, OFA   percent of the time that these engines were busy with it",
        "bus   percent of the time in which the GPU's memory was read or written",
        "MEMORY   held / quota",
        "GPU TIME   that its programs have had so far",
        "",
        "A narrow terminal has fewer columns. A name that ends with + is longer than that.",
};

static SCREEN *terminal;

int top_screen_open(void)
{
        (void)setlocale(LC_ALL, "");
        terminal = newterm(NULL, stdout, stdin);
        if (!terminal)
                return -ENOTTY;
        (void)cbreak();
        (void)noecho();
        (void)nonl();
        (void)keypad(stdscr, TRUE);
        (void)nodelay(stdscr, TRUE);
        (void)curs_set(0);
        set_escdelay(25);
        if (has_colors()) {
                (void)start_color();
                (void)use_default_colors();
                (void)init_pair(PAIR_BUSY, COLOR_GREEN, -1);
                (void)init_pair(PAIR_FULL, COLOR_YELLOW, -1);
                (void)init_pair(PAIR_WARNING, COLOR_RED, -1);
        }
        return 0;
}

void top_screen_close(void)
{
        if (!terminal)
                return;
        (void)endwin();
        delscreen(terminal);
        terminal = NULL;
}

static void put_line(int row, const char *text, attr_t attributes)
{
        if (row < 0 || row >= LINES)
                return;
        (void)attrset((int)attributes);
        (void)mvaddnstr(row, 0, text, -1);
        /* The rest of the row too; never its last column of the last row, which would scroll. */
        for (int column = (int)text_width(text); column < COLS - (row == LINES - 1); column++)
                (void)mvaddch(row, column, ' ');
        (void)attrset(A_NORMAL);
}

/* Narrower than this nothing can be read: a mark would not help. */
#define MARKED_MIN 10

size_t top_screen_get_width(void)
{
        return COLS > 1 ? (size_t)COLS - 1 : 1;
}

/* What does not fit is cut, and marked as such. */
static void put_cut(int row, const char *text, attr_t attributes)
{
        char cut[TOP_TEXT_MAX];
        size_t width = top_screen_get_width();

        if (text_width(text) > width && width < MARKED_MIN) {
                put_line(row, "", attributes);
                (void)mvaddnstr(row, 0, text, (int)width);
                return;
        }
        top_layout_put(cut, sizeof(cut), text, width);
        put_line(row, cut, attributes);
}

/* At blanks, into lines of which all but the first begin with some; returns how many. */
static int put_wrapped(int row, const char *text)
{
        const size_t width = top_screen_get_width();
        char line[TOP_TEXT_MAX];
        int n = 0;

        do {
                size_t indent = n > 0 ? 4 : 0, length = strlen(text);

                if (width > MARKED_MIN && length + indent > width) {
                        length = width - indent;
                        while (length > 1 && text[length] != ' ')
                                length--;
                }
                (void)snprintf(line, sizeof(line), "%*s%.*s", (int)indent, "", (int)length, text);
                put_cut(row + n++, line, A_NORMAL);
                text += length;
                text += strspn(text, " ");
        } while (*text && row + n < LINES - 1);
        return n;
}

static attr_t colour_of(uint32_t percent)
{
        if (!has_colors() || percent < BUSY_PERCENT)
                return A_NORMAL;
        return (attr_t)COLOR_PAIR(percent < FULL_PERCENT ? PAIR_BUSY : PAIR_FULL);
}

static int count_device_rows(const struct top_view *view)
{
        int room = LINES / 3;

        return view && (int)view->n_devices < room ? (int)view->n_devices : room;
}

size_t top_screen_page(const struct top_view *view)
{
        int rows = LINES - count_device_rows(view) - 3;

        return rows > 0 ? (size_t)rows : 0;
}

/* Adds what still fits as a whole. */
static void append(char *text, size_t room, const char *more)
{
        if (text_width(text) + text_width(more) <= top_screen_get_width() &&
            strlen(text) + strlen(more) < room)
                (void)strcat(text, more);
}

static void draw_head(const struct top_screen *screen)
{
        char text[TOP_TEXT_MAX] = "vgpu top", part[64], when[16] = "";
        const struct top_view *view = screen->view;
        size_t n_programs = 0, n_devices = view ? view->n_devices : 0;
        time_t now = time(NULL);
        struct tm local;

        if (localtime_r(&now, &local))
                (void)strftime(when, sizeof(when), "  %H:%M:%S", &local);
        for (size_t i = 0; view && i < view->n_lines; i++)
                if (!view->lines[i].process && !view->lines[i].part)
                        n_programs += view->lines[i].instance->n_processes;
        if (screen->is_old)
                append(text, sizeof(text), "  (vgpud does not answer)");
        append(text, sizeof(text), when);
        (void)snprintf(part, sizeof(part), "  sorted by %s", top_order_get_name(screen->order));
        append(text, sizeof(text), part);
        (void)snprintf(part, sizeof(part), "  %zu GPU%s", n_devices, n_devices == 1 ? "" : "s");
        append(text, sizeof(text), part);
        (void)snprintf(part, sizeof(part), "  %zu program%s", n_programs,
                       n_programs == 1 ? "" : "s");
        append(text, sizeof(text), part);
        put_cut(0, text, screen->is_old ? A_BOLD | COLOR_PAIR(PAIR_WARNING) : A_BOLD);
}

static void draw_keys(int row)
{
        char text[TOP_TEXT_MAX] = "";

        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
                append(text, sizeof(text), i > 0 ? "  " : "");
                append(text, sizeof(text), keys[i]);
        }
        put_cut(row, text, A_DIM);
}

static void draw_lines(const struct top_screen *screen, int row)
{
        const struct top_view *view = screen->view;
        size_t page = top_screen_page(view);

        if (screen->chosen < *screen->first)
                *screen->first = screen->chosen;
        if (screen->chosen >= *screen->first + page)
                *screen->first = screen->chosen - page + 1;
        if (view->n_lines <= page)
                *screen->first = 0;
        for (size_t i = 0; i < page; i++) {
                size_t at = *screen->first + i;
                attr_t attributes;

                if (at >= view->n_lines) {
                        put_line(row + (int)i, "", A_NORMAL);
                        continue;
                }
                attributes = screen->is_old ? A_DIM : colour_of(view->lines[at].gpu);
                if (!view->lines[at].process && !view->lines[at].part)
                        attributes |= A_BOLD;
                if (at == screen->chosen)
                        attributes |= A_REVERSE;
                put_cut(row + (int)i, view->lines[at].text, attributes);
        }
}

/* What the chosen vGPU is called, and below it the graph. */
static void draw_graph(const struct top_screen *screen, int row)
{
        char(*lines)[TOP_TEXT_MAX] = calloc((size_t)LINES, sizeof(*lines));
        int n = LINES - 2 - row;

        put_cut(row, screen->view->lines[screen->chosen].text, A_BOLD);
        if (lines && n > 1)
                top_graph_make(screen->graph, lines, (size_t)n, top_screen_get_width());
        for (int i = 0; lines && n > 1 && i < n; i++)
                put_cut(row + 1 + i, lines[i], screen->is_old ? A_DIM : A_NORMAL);
        free(lines);
}

static void draw_help(int row)
{
        for (size_t i = 0; row < LINES - 1; i++) {
                if (i < sizeof(help) / sizeof(help[0]))
                        row += put_wrapped(row, help[i]);
                else
                        put_cut(row++, "", A_NORMAL);
        }
}

void top_screen_draw(const struct top_screen *screen)
{
        int n_devices = count_device_rows(screen->view);

        (void)erase();
        draw_head(screen);
        for (int i = 0; screen->view && i < n_devices; i++)
                put_cut(1 + i, screen->view->devices[i], screen->is_old ? A_DIM : A_NORMAL);
        put_cut(1 + n_devices, screen->view ? screen->view->title : "", A_REVERSE);
        if (screen->shows_help)
                draw_help(2 + n_devices);
        else if (screen->graph)
                draw_graph(screen, 2 + n_devices);
        else if (screen->view && top_screen_page(screen->view) > 0)
                draw_lines(screen, 2 + n_devices);
        if (*screen->status)
                put_cut(LINES - 1, screen->status, A_BOLD);
        else
                draw_keys(LINES - 1);
        (void)refresh();
}

int top_screen_read(void)
{
        static const struct {
                int curses;
                enum top_key key;
        } known[] = {
                { ERR, TOP_KEY_NONE },
                { KEY_UP, TOP_KEY_UP },
                { KEY_DOWN, TOP_KEY_DOWN },
                { KEY_PPAGE, TOP_KEY_PAGE_UP },
                { KEY_NPAGE, TOP_KEY_PAGE_DOWN },
                { KEY_RESIZE, TOP_KEY_RESIZED },
        };
        int key = getch();

        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
                if (known[i].curses == key)
                        return (int)known[i].key;
        return key > ' ' && key <= '~' ? TOP_KEY_LETTER + key : TOP_KEY_OTHER;
}
