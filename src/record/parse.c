/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From text to a struct, without JSON's objects in between: a tenth of the time, of which a monitor that
 * asks for hundreds of vGPUs has much.
 *
 * It knows what writer.c and jansson write, and nothing else: no white space, of
 * the escapes only \" and \\. With anything else it gives up, and record_read() judges.
 */
#include <errno.h>
#include <locale.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "record/memory.h"
#include "record/record.h"

/* More members than a record has; those of its parts count. */
#define SLOTS_MAX 64

/* Of what is skipped. */
#define DEPTH_MAX 16

/* A double holds whole numbers and powers of ten up to these without an error. */
#define EXACT_MAX    ((uint64_t)1 << 53)
#define EXACT_POWERS 22

struct parser {
        char *at;
        struct record_memory *memory;
        locale_t locale; /* whose numbers have a point */
};

/* A member that may come, and where its value goes. */
struct slot {
        const struct record_field *field;
        char *member;
        bool is_there;
};

struct slots {
        struct slot slot[SLOTS_MAX];
        size_t n, next; /* the one that is likely to come next: members come in one order */
};

static int parse_object(struct parser *parser, const struct record *record, void *object);

/* Marks. */

static bool take(struct parser *parser, char mark)
{
        if (*parser->at != mark)
                return false;
        parser->at++;
        return true;
}

static bool take_word(struct parser *parser, const char *word)
{
        size_t n = strlen(word);

        if (strncmp(parser->at, word, n) != 0)
                return false;
        parser->at += n;
        return true;
}

/* Texts: they stay where they are, and lose their escapes and their last quote. */

static char *parse_text(struct parser *parser)
{
        char *text, *to;
        size_t n;

        if (!take(parser, '"'))
                return NULL;
        text = to = parser->at;
        while (*parser->at != '"') {
                if (*parser->at == '\\') {
                        parser->at++;
                        if (*parser->at != '"' && *parser->at != '\\')
                                return NULL;
                }
                n = text_measure(parser->at);
                if (n == 0)
                        return NULL;
                for (; n > 0; n--)
                        *to++ = *parser->at++;
        }
        parser->at++;
        *to = '\0';
        return text;
}

/* Numbers. */

struct number {
        double value;
        uint64_t whole; /* without its sign */
        bool is_negative, is_integer;
};

static bool is_digit(char letter)
{
        return letter >= '0' && letter <= '9';
}

/* The digits up to the first other letter; false: they are no 64-bit number. */
static bool parse_digits(struct parser *parser, uint64_t *value)
{
        const char *first = parser->at;

        for (; is_digit(*parser->at); parser->at++)
                if (__builtin_mul_overflow(*value, 10, value) ||
                    __builtin_add_overflow(*value, (uint64_t)(*parser->at - '0'), value))
                        return false;
        return parser->at > first;
}

/* What stands at @from has a fraction or an exponent. */
static bool parse_real(struct parser *parser, const char *from, struct number *number)
{
        static const double powers[EXACT_POWERS + 1] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,
                                                         1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                                         1e12, 1e13, 1e14, 1e15, 1e16, 1e17,
                                                         1e18, 1e19, 1e20, 1e21, 1e22 };
        uint64_t digits = number->whole;
        const char *point = parser->at;
        size_t n;
        char *end;

        number->is_integer = false;
        if (point[0] == '.' && !is_digit(point[1]))
                return false;
        if (take(parser, '.') && parse_digits(parser, &digits) && *parser->at != 'e' &&
            *parser->at != 'E') {
                n = (size_t)(parser->at - point) - 1;
                if (digits <= EXACT_MAX && n <= EXACT_POWERS) {
                        number->value = (double)digits / powers[n];
                        return true;
                }
        }
        number->value = strtod_l(from, &end, parser->locale);
        parser->at += end - parser->at;
        return true;
}

static bool parse_number(struct parser *parser, struct number *ret_number)
{
        struct number number = { .is_integer = true };
        const char *first;

        number.is_negative = take(parser, '-');
        first = parser->at;
        if (!parse_digits(parser, &number.whole) || number.whole > INT64_MAX ||
            (*first == '0' && parser->at - first > 1))
                return false;
        number.value = (double)number.whole;
        if ((*parser->at == '.' || *parser->at == 'e' || *parser->at == 'E') &&
            !parse_real(parser, first, &number))
                return false;
        *ret_number = number;
        return true;
}

static bool parse_integer(struct parser *parser, uint64_t most_below_0, uint64_t most,
                          struct number *ret_number)
{
        return parse_number(parser, ret_number) && ret_number->is_integer &&
               ret_number->whole <= (ret_number->is_negative ? most_below_0 : most);
}

static bool parse_seconds(struct parser *parser, double *ret_value)
{
        struct number number;

        if (!parse_number(parser, &number) || (number.is_negative && number.value > 0) ||
            number.value > 0x1p53)
                return false;
        *ret_value = number.value;
        return true;
}

/* Values. */

static bool parse_bool(struct parser *parser, bool *ret_value)
{
        *ret_value = take_word(parser, "true");
        return *ret_value || take_word(parser, "false");
}

static bool parse_known_word(struct parser *parser, const struct record_words *words,
                             unsigned int *ret_value)
{
        const char *text = parse_text(parser);

        *ret_value = 0;
        for (size_t i = 0; text && i < words->n; i++)
                if (strcmp(words->word[i], text) == 0)
                        *ret_value = (unsigned int)i;
        return text;
}

static bool parse_simple(struct parser *parser, const struct slot *slot)
{
        struct number number;
        double seconds;

        switch (slot->field->type) {
        case RECORD_TEXT:
                *(const char **)(void *)slot->member = parse_text(parser);
                return *(const char **)(void *)slot->member;
        case RECORD_U64:
                if (!parse_integer(parser, 0, INT64_MAX, &number))
                        return false;
                *(uint64_t *)(void *)slot->member = number.whole;
                return true;
        case RECORD_U32:
                if (!parse_integer(parser, 0, UINT32_MAX, &number))
                        return false;
                *(uint32_t *)(void *)slot->member = (uint32_t)number.whole;
                return true;
        case RECORD_I32:
                if (!parse_integer(parser, (uint64_t)INT32_MAX + 1, INT32_MAX, &number))
                        return false;
                *(int32_t *)(void *)slot->member =
                        (int32_t)(number.is_negative ? -(int64_t)number.whole
                                                     : (int64_t)number.whole);
                return true;
        case RECORD_SECONDS:
                return parse_seconds(parser, (double *)(void *)slot->member);
        case RECORD_TIME:
                if (!parse_seconds(parser, &seconds))
                        return false;
                *(int64_t *)(void *)slot->member = (int64_t)seconds;
                return true;
        case RECORD_BOOL:
                return parse_bool(parser, (bool *)(void *)slot->member);
        case RECORD_WORD:
                return parse_known_word(parser, slot->field->words,
                                        (unsigned int *)(void *)slot->member);
        default:
                return false;
        }
}

/* Of another version: whatever it is. */
static bool skip_value(struct parser *parser, int depth);

static bool skip_members(struct parser *parser, int depth, bool has_names, char last)
{
        parser->at++;
        if (take(parser, last))
                return true;
        do {
                if (has_names && (!parse_text(parser) || !take(parser, ':')))
                        return false;
                if (!skip_value(parser, depth))
                        return false;
        } while (take(parser, ','));
        return take(parser, last);
}

static bool skip_value(struct parser *parser, int depth)
{
        struct number number;
        bool flag;

        if (depth == DEPTH_MAX)
                return false;
        switch (*parser->at) {
        case '{':
                return skip_members(parser, depth + 1, true, '}');
        case '[':
                return skip_members(parser, depth + 1, false, ']');
        case '"':
                return parse_text(parser);
        case 'n':
                return take_word(parser, "null");
        case 't':
        case 'f':
                return parse_bool(parser, &flag);
        default:
                return parse_number(parser, &number);
        }
}

/* Lists: their items are in one piece, which is as large as need be. */

struct items {
        char *first;
        size_t n, room;
};

static bool make_room(struct parser *parser, struct items *items, size_t size)
{
        size_t room = items->room ? 2 * items->room : 8;
        char *more;

        if (items->n < items->room)
                return true;
        more = record_memory_get(parser->memory, room, size);
        if (!more)
                return false;
        if (items->n > 0)
                memcpy(more, items->first, items->n * size);
        items->first = more;
        items->room = room;
        return true;
}

static int parse_items(struct parser *parser, const struct record *record, struct items *items)
{
        int r = 0;

        if (!take(parser, '['))
                return -EBADMSG;
        if (take(parser, ']'))
                return 0;
        do {
                if (!make_room(parser, items, record->size))
                        return -ENOMEM;
                r = parse_object(parser, record, items->first + items->n * record->size);
                items->n++;
        } while (r == 0 && take(parser, ','));
        return r < 0 ? r : take(parser, ']') ? 0 : -EBADMSG;
}

static int parse_list(struct parser *parser, const struct record_field *field, char *member)
{
        struct items items = { 0 };
        const void **pointers;
        int r = parse_items(parser, field->record, &items);

        if (r < 0)
                return r;
        pointers = record_memory_get(parser->memory, items.n + 1, sizeof(*pointers));
        if (!pointers)
                return -ENOMEM;
        for (size_t i = 0; i < items.n; i++)
                pointers[i] = items.first + i * field->record->size;
        memcpy(member, &pointers, sizeof(const void *));
        memcpy(member - field->offset + field->count_offset, &items.n, sizeof(items.n));
        return 0;
}

static void *make_part(struct parser *parser, const struct record_field *field, char *member)
{
        void *part = record_memory_get(parser->memory, 1, field->record->size);

        if (part)
                memcpy(member, &part, sizeof(part));
        return part;
}

static int parse_part(struct parser *parser, const struct record_field *field, char *member)
{
        void *part = make_part(parser, field, member);

        return part ? parse_object(parser, field->record, part) : -ENOMEM;
}

/* Objects. */

/* The members of @record, and of the parts whose members stand among them. */
static int list_slots(struct parser *parser, struct slots *slots, const struct record *record,
                      char *object)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < record->n_fields; i++) {
                const struct record_field *field = &record->fields[i];
                char *member = object + field->offset;
                void *part;

                if (*field->name) {
                        if (slots->n == SLOTS_MAX)
                                return -EBADMSG;
                        slots->slot[slots->n++] = (struct slot){ field, member, false };
                        continue;
                }
                part = make_part(parser, field, member);
                r = part ? list_slots(parser, slots, field->record, part) : -ENOMEM;
        }
        return r;
}

static struct slot *find_slot(struct slots *slots, const char *name)
{
        for (size_t i = 0; i < slots->n; i++) {
                size_t k = slots->next + i;

                k -= k >= slots->n ? slots->n : 0;
                if (strcmp(slots->slot[k].field->name, name) != 0)
                        continue;
                slots->next = k + 1 < slots->n ? k + 1 : 0;
                return &slots->slot[k];
        }
        return NULL;
}

static int parse_member(struct parser *parser, struct slots *slots)
{
        const char *name = parse_text(parser);
        struct slot *slot;

        if (!name || !take(parser, ':'))
                return -EBADMSG;
        slot = find_slot(slots, name);
        if (!slot)
                return skip_value(parser, 0) ? 0 : -EBADMSG;
        if (slot->is_there)
                return -EBADMSG;
        slot->is_there = true;
        if (slot->field->type == RECORD_LIST)
                return parse_list(parser, slot->field, slot->member);
        if (slot->field->type == RECORD_PART)
                return parse_part(parser, slot->field, slot->member);
        return parse_simple(parser, slot) ? 0 : -EBADMSG;
}

/* The object came zeroed, so only a text needs something in place of its value. */
static int fill_missing(const struct slots *slots)
{
        for (size_t i = 0; i < slots->n; i++) {
                const struct slot *slot = &slots->slot[i];

                if (slot->is_there)
                        continue;
                if (!slot->field->is_optional)
                        return -EBADMSG;
                if (slot->field->type == RECORD_TEXT)
                        *(const char **)(void *)slot->member = "";
        }
        return 0;
}

static int parse_object(struct parser *parser, const struct record *record, void *object)
{
        struct slots slots;
        int r;

        slots.n = slots.next = 0;
        r = list_slots(parser, &slots, record, object);
        if (r < 0)
                return r;
        if (!take(parser, '{'))
                return -EBADMSG;
        if (take(parser, '}'))
                return fill_missing(&slots);
        do
                r = parse_member(parser, &slots);
        while (r == 0 && take(parser, ','));
        if (r < 0)
                return r;
        return take(parser, '}') ? fill_missing(&slots) : -EBADMSG;
}

int record_parse(const struct record *record, char **text, void *object,
                 struct record_memory *memory)
{
        struct parser parser = { .at = *text, .memory = memory };
        int r;

        parser.locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
        if (!parser.locale)
                return -ENOMEM;
        r = parse_object(&parser, record, object);
        freelocale(parser.locale);
        *text = parser.at;
        return r;
}
