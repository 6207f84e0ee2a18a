/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/facts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "base/text.h"

void facts_init(struct facts *facts, const struct arguments *arguments)
{
        *facts = (struct facts){ .is_json = arguments->is_json, .root = json_object() };
        facts->section = facts->root;
}

void facts_deinit(struct facts *facts)
{
        json_decref(facts->root);
        facts->root = NULL;
}

json_t *facts_take(struct facts *facts)
{
        json_t *root = facts->root;

        facts->root = NULL;
        return root;
}

void facts_begin(struct facts *facts, const char *key, const char *title)
{
        json_t *section = key ? json_object() : NULL;

        facts->section = facts->root;
        if (key && json_object_set_new(facts->root, key, section) == 0)
                facts->section = section;
        if (title && !facts->is_json)
                printf("%s%s\n", facts->n_lines > 0 ? "\n" : "", title);
}

static void print_line(struct facts *facts, const char *label, const char *text)
{
        char clean[1024];

        facts->n_lines++;
        if (!facts->is_json)
                printf("  %-20s  %s\n", label, text_clean(clean, sizeof(clean), text));
}

void facts_add(struct facts *facts, const char *key, const char *label, json_t *value,
               const char *format, ...)
{
        char text[1024];
        va_list args;

        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        json_object_set_new(facts->section, key, value);
        if (label)
                print_line(facts, label, text);
}

char *facts_why(char *text, const struct vgpu_host *host)
{
        const struct vgpu_error *error = vgpu_host_get_error(host);
        const char *needs = strstr(error->message, "needs R");

        switch (error->kind) {
        case VGPU_ERROR_NOT_SUPPORTED:
                snprintf(text, FACTS_WHY_MAX, "not supported");
                break;
        case VGPU_ERROR_NOT_LOADED:
                snprintf(text, FACTS_WHY_MAX, "no driver runs in the guest");
                break;
        case VGPU_ERROR_NOT_IN_DRIVER: /* "... (needs R550 or newer)" */
                snprintf(text, FACTS_WHY_MAX, "%s", needs ? needs : "not in this driver");
                text[strcspn(text, ")")] = '\0';
                break;
        default:
                snprintf(text, FACTS_WHY_MAX, "%s", error->name);
                break;
        }
        return text;
}

void facts_add_unknown(struct facts *facts, const char *key, const char *label,
                       const struct vgpu_host *host)
{
        char why[FACTS_WHY_MAX];

        facts_add(facts, key, label, json_null(), "(%s)", facts_why(why, host));
}

void facts_add_bytes(struct facts *facts, const char *key, const char *label,
                     const struct vgpu_host *host, int r, uint64_t bytes)
{
        char text[SIZE_TEXT_MAX];

        if (r < 0)
                facts_add_unknown(facts, key, label, host);
        else
                facts_add(facts, key, label, json_integer((json_int_t)bytes), "%s",
                          size_format(text, bytes));
}

void facts_add_number(struct facts *facts, const char *key, const char *label,
                      const struct vgpu_host *host, int r, uint32_t number, const char *unit)
{
        if (r < 0)
                facts_add_unknown(facts, key, label, host);
        else if (number == VGPU_UNKNOWN)
                facts_add(facts, key, label, json_null(), "none");
        else
                facts_add(facts, key, label, json_integer(number), "%u%s", number, unit);
}

void facts_add_flag(struct facts *facts, const char *key, const char *label,
                    const struct vgpu_host *host, int r, bool flag)
{
        if (r < 0)
                facts_add_unknown(facts, key, label, host);
        else
                facts_add(facts, key, label, json_boolean(flag), "%s", flag ? "yes" : "no");
}

void facts_add_text(struct facts *facts, const char *key, const char *label,
                    const struct vgpu_host *host, int r, const char *text)
{
        if (r < 0)
                facts_add_unknown(facts, key, label, host);
        else if (*text == '\0')
                facts_add(facts, key, label, json_null(), "none");
        else
                facts_add(facts, key, label, json_string(text), "%s", text);
}
