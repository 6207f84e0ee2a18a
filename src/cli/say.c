/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/say.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/paths.h"
#include "base/text.h"
#include "cli/elsewhere.h"
#include "cli/ended.h"

#define MESSAGE_MAX 512

static const struct {
        enum vgpu_error_kind kind;
        enum exit_code code;
} exit_codes[] = {
        { VGPU_ERROR_NO_SUCH_VGPU, EXIT_CODE_NO_SUCH },
        { VGPU_ERROR_NO_SUCH_DEVICE, EXIT_CODE_NO_SUCH },
        { VGPU_ERROR_INVALID_PARAMETER, EXIT_CODE_USAGE },
        { VGPU_ERROR_WRONG_STATE, EXIT_CODE_STATE },
        { VGPU_ERROR_BUSY, EXIT_CODE_STATE },
        { VGPU_ERROR_TIMED_OUT, EXIT_CODE_TIMED_OUT },
        { VGPU_ERROR_PERMISSION_DENIED, EXIT_CODE_PERMISSION },
        { VGPU_ERROR_NO_MANAGER, EXIT_CODE_NO_MANAGER },
        { VGPU_ERROR_NO_ANSWER, EXIT_CODE_NO_MANAGER },
        { VGPU_ERROR_CONNECTION_LOST, EXIT_CODE_NO_MANAGER },
        { VGPU_ERROR_NO_LIBRARY, EXIT_CODE_NO_MANAGER },
        { VGPU_ERROR_NOT_LOADED, EXIT_CODE_NO_MANAGER },
        { VGPU_ERROR_NO_SUCH_TYPE, EXIT_CODE_NO_SUCH },
        { VGPU_ERROR_NO_SUCH_PROCESS, EXIT_CODE_NO_SUCH },
        { VGPU_ERROR_NO_CUDA, EXIT_CODE_NO_CUDA },
};

static enum exit_code exit_code_from(enum vgpu_error_kind kind)
{
        for (size_t i = 0; i < sizeof(exit_codes) / sizeof(exit_codes[0]); i++)
                if (exit_codes[i].kind == kind)
                        return exit_codes[i].code;
        return EXIT_CODE_FAILED;
}

static void print(const struct arguments *arguments, const char *message, const char *hint)
{
        char clean[128], about[140] = "";

        if (arguments->vgpu)
                snprintf(about, sizeof(about),
                         "%s: ", text_clean(clean, sizeof(clean), arguments->vgpu));
        else if (arguments->device)
                snprintf(about, sizeof(about), "GPU %s: ", arguments->device);
        if (arguments->command)
                fprintf(stderr, "vgpu: %s: %s%s\n", arguments->command->name, about, message);
        else
                fprintf(stderr, "vgpu: %s\n", message);
        if (*hint)
                fprintf(stderr, "hint: %s\n", hint);
}

static void print_json(const struct arguments *arguments, const char *name, const char *message,
                       const char *hint, enum exit_code code)
{
        CLEANUP(json_decrefp)
        json_t *document = json_pack("{s{ss ss ss si ss* ss*}}", "error", "name", name, "message",
                                     message, "hint", hint, "exit_code", (int)code, "vgpu",
                                     arguments->vgpu, "device", arguments->device);

        json_dumpf(document, stderr, JSON_INDENT(2));
        fputc('\n', stderr);
}

static int say(const struct arguments *arguments, enum exit_code code, const char *name,
               const char *message, const char *hint)
{
        char clean[MESSAGE_MAX];

        text_clean(clean, sizeof(clean), message);
        fflush(stdout);
        if (arguments->is_json)
                print_json(arguments, name, clean, hint, code);
        else
                print(arguments, clean, hint);
        return (int)code;
}

int say_usage(const struct arguments *arguments, const char *hint, const char *message, ...)
{
        char text[MESSAGE_MAX];
        va_list args;

        va_start(args, message);
        vsnprintf(text, sizeof(text), message, args);
        va_end(args);
        return say(arguments, EXIT_CODE_USAGE, "Usage", text, hint);
}

int say_failure(const struct arguments *arguments, enum exit_code code, const char *name,
                const char *hint, const char *message, ...)
{
        char text[MESSAGE_MAX];
        va_list args;

        va_start(args, message);
        vsnprintf(text, sizeof(text), message, args);
        va_end(args);
        return say(arguments, code, name, text, hint);
}

enum exit_code say_get_code(const struct vgpu_error *error)
{
        return exit_code_from(error->kind);
}

/* The socket of a manager that has ended is still there. */
static bool was_there(const char *directory)
{
        char path[PATHS_MAX];

        return paths_join(path, directory, PATHS_CONTROL_SOCKET) == 0 && access(path, F_OK) == 0;
}

/* One that had vGPUs is to be started again, whatever runs elsewhere. */
static void write_hint(char *hint, size_t room, const struct vgpu_error *error)
{
        char directory[PATHS_MAX];
        bool has_ended = paths_run_client(directory) == 0 && was_there(directory);

        if (has_ended && ended_has_vgpus(directory))
                snprintf(hint, room, "%s", error->hint);
        else if (!elsewhere_hint(hint, room))
                snprintf(hint, room, "%s", has_ended ? "start vgpud again" : error->hint);
}

int say_library_error(const struct arguments *arguments, const struct vgpu_error *error)
{
        char hint[ELSEWHERE_HINT_MAX];

        if (error->kind == VGPU_ERROR_NO_MANAGER)
                write_hint(hint, sizeof(hint), error);
        return say(arguments, exit_code_from(error->kind), error->name, error->message,
                   error->kind == VGPU_ERROR_NO_MANAGER ? hint : error->hint);
}

int say_error(const struct arguments *arguments, const struct vgpu_client *client)
{
        return say_library_error(arguments, vgpu_client_get_error(client));
}
