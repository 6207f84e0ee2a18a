/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top-screen.h"

#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"

/* Pairs of colours; without colours they are all the same. */
enum { PAIR_NORMAL, PAIR_BUSY, PAIR_FULL, PAIR_WARNING };

#define BUSY_PERCENT 10
#define FULL_PERCENT 85

static const char keys[] =
        "q quit  s suspend  r resume  + - share  g m e t n sort  p programs  h help";

static const char *const help[] = {
        "up, down, page up, page down   choose a vGPU or program",
        "s   suspend the chosen vGPU: off its GPU, its programs wait",
        "r   resume it",
        "+ - give it 5 % more or less of the GPU's time; for root",
        "g m e t n   sort by GPU use, memory, encoder, GPU time, name",
        "p   show programs, or only vGPUs",
        "h   this, and back;   q   quit",
        "",
        "SHARE     percent of the GPU's time that it can count on now",
        "USE       percent that it got",
        "MEM, ENC  percent of the time that memory and encoder were busy with it",
        "MEMORY    held / quota;   GPU TIME   that its programs have had so far",
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

/* What does not fit is cut, by columns. */
static void put_cut(int row, const char *text, attr_t attributes)
{
        char cut[2 * TOP_TEXT_MAX];
        size_t n = 0, columns = 0;

        for (; text[n] && n < sizeof(cut) - 1; n++) {
                if ((text[n] & 0xc0) != 0x80 && ++columns >= (size_t)COLS)
                        break;
                cut[n] = text[n];
        }
        cut[n] = '\0';
        put_line(row, cut, attributes);
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

static void draw_head(const struct top_screen *screen)
{
        char text[TOP_TEXT_MAX], when[16] = "";
        const struct top_view *view = screen->view;
        size_t n_programs = 0;
        time_t now = time(NULL);
        struct tm local;

        if (localtime_r(&now, &local))
                (void)strftime(when, sizeof(when), "%H:%M:%S", &local);
        for (size_t i = 0; view && i < view->n_lines; i++)
                if (!view->lines[i].process)
                        n_programs += view->lines[i].instance->n_processes;
        (void)snprintf(text, sizeof(text), "vgpu top  %s  %zu GPUs, %zu programs, sorted by %s%s",
                       when, view ? view->n_devices : 0, n_programs,
                       top_order_get_name(screen->order),
                       screen->is_old ? "  (vgpud does not answer)" : "");
        put_cut(0, text, screen->is_old ? A_BOLD | COLOR_PAIR(PAIR_WARNING) : A_BOLD);
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
                if (!view->lines[at].process)
                        attributes |= A_BOLD;
                if (at == screen->chosen)
                        attributes |= A_REVERSE;
                put_cut(row + (int)i, view->lines[at].text, attributes);
        }
}

static void draw_help(int row)
{
        for (int i = 0; row + i < LINES - 1; i++)
                put_cut(row + i, i < (int)(sizeof(help) / sizeof(help[0])) ? help[i] : "",
                        A_NORMAL);
}

void top_screen_draw(const struct top_screen *screen)
{
        int n_devices = count_device_rows(screen->view);

        (void)erase();
        draw_head(screen);
        for (int i = 0; screen->view && i < n_devices; i++)
                put_cut(1 + i, screen->view->devices[i], screen->is_old ? A_DIM : A_NORMAL);
        put_cut(1 + n_devices, top_view_title, A_REVERSE);
        if (screen->shows_help)
                draw_help(2 + n_devices);
        else if (screen->view && top_screen_page(screen->view) > 0)
                draw_lines(screen, 2 + n_devices);
        put_cut(LINES - 1, *screen->status ? screen->status : keys,
                *screen->status ? A_BOLD : A_DIM);
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
