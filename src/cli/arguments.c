/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/arguments.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/text.h"
#include "cli/duration.h"
#include "cli/say.h"

/* Parsing goes on after an error, so that a --json behind it still decides how it is told. */
struct parser {
        struct arguments *arguments;
        bool is_over; /* what follows are words */
        char problem[256];
        char hint[256];
};

__attribute__((format(printf, 3, 4))) static void complain(struct parser *parser, const char *hint,
                                                           const char *problem, ...)
{
        va_list args;

        if (parser->problem[0])
                return;
        va_start(args, problem);
        vsnprintf(parser->problem, sizeof(parser->problem), problem, args);
        va_end(args);
        snprintf(parser->hint, sizeof(parser->hint), "%s", hint);
}

static size_t count_options(const struct command *command)
{
        size_t n = 0;

        while (command->options[n].name)
                n++;
        return n;
}

/* Every command has them; take_option() knows them. */
static const char *const everywhere[] = { "json", "help" };

static bool has_option(const struct command *command, const char *name)
{
        for (size_t i = 0; i < count_options(command); i++)
                if (strcmp(command->options[i].name, name) == 0)
                        return true;
        for (size_t i = 0; i < sizeof(everywhere) / sizeof(everywhere[0]); i++)
                if (strcmp(everywhere[i], name) == 0)
                        return true;
        return false;
}

/* What other tools call it; the first that the command has. */
static const struct {
        const char *other, *ours;
} synonyms[] = {
        { "q", "names" },      { "quiet", "names" },  { "w", "watch" },    { "f", "watch" },
        { "follow", "watch" }, { "watch", "follow" }, { "mem", "memory" }, { "size", "fb" },
        { "gpu", "device" },   { "gpus", "devices" }, { "o", "json" },     { "output", "json" },
        { "format", "json" },  { "time", "timeout" }, { "t", "timeout" },  { "interval", "delay" },
        { "d", "delay" },      { "n", "name" },       { "user", "owner" },
};

static const char *find_similar(const struct command *command, const char *name)
{
        const char *similar = NULL;
        size_t least = TEXT_LEAST;

        for (size_t i = 0; i < sizeof(synonyms) / sizeof(synonyms[0]); i++)
                if (strcmp(synonyms[i].other, name) == 0 && has_option(command, synonyms[i].ours))
                        return synonyms[i].ours;
        for (size_t i = 0; name[0] && name[1] && i < count_options(command); i++)
                if (text_is_closer(name, command->options[i].name, &least))
                        similar = command->options[i].name;
        for (size_t i = 0; i < sizeof(everywhere) / sizeof(everywhere[0]); i++)
                if (text_is_closer(name, everywhere[i], &least))
                        similar = everywhere[i];
        return similar;
}

static void complain_unknown(struct parser *parser, const char *name, const char *word)
{
        const struct command *command = parser->arguments->command;
        const char *similar = find_similar(command, name);
        char hint[128];

        if (similar)
                snprintf(hint, sizeof(hint), "did you mean '--%s'?", similar);
        else
                snprintf(hint, sizeof(hint), "see 'vgpu help %s'", command->name);
        complain(parser, hint, "unknown option '%s'", word);
}

/* Is @word, of @length letters without the dashes, the option? One letter may be its short form. */
static bool is_option(const struct option *option, const char *word, size_t length, bool is_long)
{
        if (!is_long)
                return length == 1 && option->letter == word[0];
        return strlen(option->name) == length && strncmp(option->name, word, length) == 0;
}

static void take_repeated(struct parser *parser, const char *value)
{
        struct arguments *arguments = parser->arguments;

        if (arguments->n_repeated == COMMAND_REPEATS_MAX)
                complain(parser, "", "an option is given more than %d times", COMMAND_REPEATS_MAX);
        else if (value)
                arguments->repeated[arguments->n_repeated++] = value;
}

static int take_option(struct parser *parser, const char *word, const char *next);

/* @option under its other name. */
static int take_same(struct parser *parser, const struct option *option, const char *value,
                     const char *next)
{
        char word[32];

        snprintf(word, sizeof(word), "--%s", option->same_as);
        if (!value)
                return take_option(parser, word, next);
        (void)take_option(parser, word, value);
        return 1;
}

/* Takes the option @word, perhaps with the value @next. Returns how many words it has taken. */
static int take_option(struct parser *parser, const char *word, const char *next)
{
        struct arguments *arguments = parser->arguments;
        const struct command *command = arguments->command;
        bool is_long = word[1] == '-';
        const char *name = word + 1 + is_long;
        size_t length = is_long ? strcspn(name, "=") : strlen(name);
        const char *value = name[length] == '=' ? name + length + 1 : NULL;

        for (size_t i = 0; i < count_options(command); i++) {
                const struct option *option = &command->options[i];

                if (!is_option(option, name, length, is_long))
                        continue;
                if (option->same_as)
                        return take_same(parser, option, value, next);
                if (!option->argument && value)
                        complain(parser, "", "--%s takes no value", option->name);
                if (option->argument && !value && !next)
                        complain(parser, "", "--%s needs %s", option->name, option->argument);
                if (arguments->values[i] && option->argument && !option->may_repeat)
                        complain(parser, "", "--%s is given twice", option->name);
                arguments->values[i] = !option->argument ? "" : value ? value : next;
                if (option->may_repeat)
                        take_repeated(parser, arguments->values[i]);
                return option->argument && !value && next ? 2 : 1;
        }
        if (strcmp(word, "--json") == 0)
                arguments->is_json = true;
        else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
                arguments->wants_help = true;
        else
                complain_unknown(parser, name, word);
        return 1;
}

/* A number behind a name is a device: 'vgpu migrate train 1'. No vGPU is called so. */
static bool is_device(const struct command *command, const char *word)
{
        return has_option(command, "device") && strspn(word, "0123456789") == strlen(word);
}

/* 'vgpu resize train 40G'. A vGPU may be called so, but then there are two names, and one is too many. */
static bool is_size(const struct command *command, const char *word)
{
        uint64_t bytes;

        return has_option(command, "fb") && size_parse(&bytes, word) == 0;
}

static void complain_too_many(struct parser *parser, const char *word)
{
        const struct command *command = parser->arguments->command;
        char hint[64] = "";

        if (is_device(command, word))
                snprintf(hint, sizeof(hint), "did you mean '--device %.20s'?", word);
        else if (is_size(command, word))
                snprintf(hint, sizeof(hint), "did you mean '--fb %.20s'?", word);
        else if (command->n_words_max > 0)
                snprintf(hint, sizeof(hint), "one at a time, please");
        complain(parser, hint, "unexpected '%s'", word);
}

static void take_word(struct parser *parser, char *word)
{
        struct arguments *arguments = parser->arguments;
        const struct command *command = arguments->command;

        if (command->takes_program)
                parser->is_over = true;
        else if (arguments->n_words == command->n_words_max ||
                 (command->n_words_max == COMMAND_WORDS_ANY && arguments->n_words > 0 &&
                  is_device(command, word)))
                complain_too_many(parser, word);
        else if (!*word)
                complain(parser, "", "the %s is empty", command->word);
        arguments->words[arguments->n_words++] = word;
}

static void parse(struct parser *parser, int argc, char **argv)
{
        for (int i = 0; i < argc;) {
                char *word = argv[i];

                if (!parser->is_over && strcmp(word, "--") == 0) {
                        parser->is_over = true;
                        i++;
                } else if (!parser->is_over && word[0] == '-' && word[1] != '\0') {
                        i += take_option(parser, word, i + 1 < argc ? argv[i + 1] : NULL);
                } else {
                        take_word(parser, word);
                        i++;
                }
        }
}

int arguments_parse(struct arguments *arguments, const struct command *command, int argc,
                    char **argv)
{
        struct parser parser = { .arguments = arguments };
        char see[64];

        /* Words move to the front, where options were read already. */
        *arguments = (struct arguments){ .command = command, .words = argv };
        parse(&parser, argc, argv);
        argv[arguments->n_words] = NULL;
        if (arguments->wants_help)
                return 0;

        if (arguments->n_words < command->n_words_min)
                complain(&parser, "", "the %s is missing", command->word);
        if (!parser.problem[0])
                return 0;
        if (!parser.hint[0]) {
                snprintf(see, sizeof(see), "see 'vgpu help %s'", command->name);
                snprintf(parser.hint, sizeof(parser.hint), "%s", see);
        }
        return say_usage(arguments, parser.hint, "%s", parser.problem);
}

const char *arguments_get(const struct arguments *arguments, const char *name)
{
        const struct option *options = arguments->command->options;

        for (size_t i = 0; options[i].name; i++)
                if (strcmp(options[i].name, name) == 0)
                        return arguments->values[i];
        return NULL;
}

int arguments_get_size(const struct arguments *arguments, const char *name, uint64_t *value)
{
        const char *text = arguments_get(arguments, name);
        char hint[64];
        int r;

        if (!text)
                return 0;
        if (size_lacks_unit(text)) {
                snprintf(hint, sizeof(hint), "did you mean '--%s %sG'?", name, text);
                return say_usage(arguments, hint, "--%s: '%s' has no unit", name, text);
        }
        r = size_parse(value, text);
        if (r == -ERANGE)
                return say_usage(arguments, "", "--%s: '%s' is more than there can be", name, text);
        if (r < 0)
                return say_usage(arguments, "write it as 40G, 1.5G or 512M",
                                 "--%s: '%s' is not a size", name, text);
        if (*value == 0)
                return say_usage(arguments, "write it as 40G, 1.5G or 512M",
                                 "--%s: '%s' is nothing at all", name, text);
        return 0;
}

int arguments_get_seconds(const struct arguments *arguments, const char *name, double *value)
{
        const char *text = arguments_get(arguments, name);

        if (text && duration_parse(value, text) < 0)
                return say_usage(arguments, DURATION_EXAMPLE, "--%s: '%s' is not a time", name,
                                 text);
        return 0;
}

int arguments_get_number(const struct arguments *arguments, const char *name,
                         const struct arguments_range *range, uint32_t *value)
{
        const char *text = arguments_get(arguments, name);
        unsigned long number;
        char *end;

        if (!text)
                return 0;
        number = strtoul(text, &end, 10);
        if (*text < '0' || *text > '9' || (*end && strcmp(end, range->unit) != 0))
                return say_usage(arguments, range->example, "--%s: '%s' is not a number", name,
                                 text);
        if (number < range->min || number > range->max)
                return say_usage(arguments, range->example, "--%s must be %u to %u, not %s", name,
                                 range->min, range->max, text);
        *value = (uint32_t)number;
        return 0;
}

int arguments_get_devices(const struct arguments *arguments, uint32_t *value)
{
        const char *text = arguments_get(arguments, "devices");
        char *end = NULL;
        unsigned long n;

        if (!text)
                return 0;
        if (arguments_get(arguments, "device"))
                return say_usage(arguments, "--device 0,1 names them; --devices 2 counts them",
                                 "leave out --device or --devices");
        n = strtoul(text, &end, 10);
        if (*text < '1' || *text > '9' || *end || n > 1000)
                return say_usage(arguments, "for example --devices 2",
                                 "--devices: '%s' is not a number of GPUs", text);
        *value = (uint32_t)n;
        return 0;
}

int arguments_get_percent(const struct arguments *arguments, const char *name, uint32_t *value)
{
        static const struct arguments_range range = {
                .unit = "%", .min = 1, .max = 100, .example = "a percentage: --share 25"
        };

        return arguments_get_number(arguments, name, &range, value);
}
