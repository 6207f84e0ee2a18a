/* SPDX-License-Identifier: Apache-2.0 */
#include "record/writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

#define FIRST_ROOM 4096

/* What a number takes at most, of either kind. */
#define NUMBER_MAX 32

static bool make_room(struct writer *writer, size_t n)
{
        size_t room = writer->room ? writer->room : FIRST_ROOM;
        char *text;

        if (writer->has_failed || writer->room - writer->size > n)
                return !writer->has_failed;
        while (room - writer->size <= n)
                room *= 2;
        text = realloc(writer->text, room);
        writer->has_failed = !text;
        if (!text)
                return false;
        writer->text = text;
        writer->room = room;
        return true;
}

static void add(struct writer *writer, const char *text, size_t n)
{
        if (!make_room(writer, n))
                return;
        memcpy(writer->text + writer->size, text, n);
        writer->size += n;
}

static void add_text(struct writer *writer, const char *text)
{
        add(writer, text, strlen(text));
}

static void begin(struct writer *writer, const char *name)
{
        if (writer->needs_comma)
                add(writer, ",", 1);
        writer->needs_comma = true;
        if (!name)
                return;
        add(writer, "\"", 1);
        add_text(writer, name);
        add(writer, "\":", 2);
}

static void open_group(struct writer *writer, const char *name, const char *sign)
{
        begin(writer, name);
        add(writer, sign, 1);
        writer->needs_comma = false;
}

static void close_group(struct writer *writer, const char *sign)
{
        add(writer, sign, 1);
        writer->needs_comma = true;
}

void writer_begin_object(struct writer *writer, const char *name)
{
        open_group(writer, name, "{");
}

void writer_end_object(struct writer *writer)
{
        close_group(writer, "}");
}

void writer_begin_array(struct writer *writer, const char *name)
{
        open_group(writer, name, "[");
}

void writer_end_array(struct writer *writer)
{
        close_group(writer, "]");
}

/* Most are 0 or small, and there are very many of them. */
void writer_integer(struct writer *writer, const char *name, int64_t value)
{
        char text[NUMBER_MAX], *end = text + sizeof(text), *at = end;
        uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;

        begin(writer, name);
        do {
                *--at = (char)('0' + left % 10);
                left /= 10;
        } while (left > 0);
        if (value < 0)
                *--at = '-';
        add(writer, at, (size_t)(end - at));
}

/* A whole number has its point: who reads it takes it for a real one. */
void writer_real(struct writer *writer, const char *name, double value)
{
        char text[NUMBER_MAX];

        if (value == 0) {
                begin(writer, name);
                add(writer, "0.0", 3);
                return;
        }
        begin(writer, name);
        snprintf(text, sizeof(text), "%.17g", value);
        add_text(writer, text);
        if (!strpbrk(text, ".e"))
                add(writer, ".0", 2);
}

void writer_boolean(struct writer *writer, const char *name, bool value)
{
        begin(writer, name);
        add_text(writer, value ? "true" : "false");
}

/* Returns how many bytes of @text that was. What is no character of UTF-8 is '?'. */
static size_t add_character(struct writer *writer, const char *text)
{
        size_t n = text_measure(text);

        if (*text == '"' || *text == '\\')
                add(writer, "\\", 1);
        add(writer, n ? text : "?", n ? n : 1);
        return n ? n : 1;
}

void writer_text(struct writer *writer, const char *name, const char *value)
{
        begin(writer, name);
        add(writer, "\"", 1);
        while (*value)
                value += add_character(writer, value);
        add(writer, "\"", 1);
}

char *writer_take(struct writer *writer)
{
        add(writer, "", 1);
        if (writer->has_failed)
                free(TAKE(writer->text));
        return TAKE(writer->text);
}
