/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest-compare [GROUP[/CASE]]...: calls the entry points that the gate has a hand in, with ordinary and
 * with wrong arguments, and prints what the driver answers. On any machine with a driver:
 *
 *     guest-compare >native
 *     vgpu run --fb 1G -- guest-compare >gated
 *     tests/system/compare.py native gated
 *
 * shows where a program can tell the gate from the driver. docs/limits-in-detail.md has the list of those that are
 * meant; what is called comes from the groups, a file each.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/guests/compare.h"

#define CASE_SECONDS 60

static const struct group {
        const char *name;
        const struct compare_case *cases;
} groups[] = {
        { "array", compare_array },     { "capture", compare_capture },
        { "context", compare_context }, { "entry", compare_entry },
        { "memory", compare_memory },   { "module", compare_module },
        { "pointer", compare_pointer }, { "pool", compare_pool },
        { "share", compare_share },     { "stream", compare_stream },
        { "texture", compare_texture }, { "virtual", compare_virtual },
};

static char prefix[128]; /* of the lines of this case */

_Bool compare_has(const char *name)
{
        static void *library;

        if (!library)
                library = dlopen("libcuda.so.1", RTLD_NOW);
        return library && dlsym(library, name);
}

void compare_say(const char *format, ...)
{
        va_list arguments;

        printf("%s: ", prefix);
        va_start(arguments, format);
        vprintf(format, arguments);
        va_end(arguments);
        printf("\n");
        fflush(stdout);
}

CUresult compare_answer(const char *name, const char *remark, CUresult result)
{
        if (result == COMPARE_NOT_THERE)
                SAY("%s (%s): not there", name, remark);
        else
                SAY("%s (%s): %d", name, remark, (int)result);
        return result;
}

CUcontext compare_start(void)
{
        CUcontext context;
        CUdevice device;

        must(DRIVER(cuInit)(0));
        must(DRIVER(cuDeviceGet)(&device, 0));
        must(DRIVER(cuDevicePrimaryCtxRetain)(&context, device));
        must(DRIVER(cuCtxSetCurrent)(context));
        return context;
}

/* In a child: what ends it, ends only this case. */
static void run_case(const struct compare_case *one)
{
        pid_t child;
        int status;

        fflush(stdout);
        child = fork();
        if (child < 0) {
                perror("fork");
                exit(1);
        }
        if (child == 0) {
                alarm(CASE_SECONDS);
                one->run();
                fflush(stdout);
                _exit(0);
        }
        while (waitpid(child, &status, 0) != child)
                ;
        if (WIFSIGNALED(status))
                SAY("ended by signal %d%s", WTERMSIG(status),
                    WTERMSIG(status) == SIGALRM ? ", as it took too long" : "");
        else if (WEXITSTATUS(status) != 0)
                SAY("exit status %d", WEXITSTATUS(status));
}

/* "group" or "group/case" */
static bool is_wanted(const char *group, char **names, int n)
{
        size_t length = strlen(group);

        for (int i = 0; i < n; i++)
                if (strcmp(names[i], prefix) == 0 ||
                    (strncmp(names[i], group, length) == 0 && names[i][length] == '\0'))
                        return true;
        return n == 0;
}

int main(int n_arguments, char **arguments)
{
        for (size_t i = 0; i < compare_count(groups); i++)
                for (const struct compare_case *one = groups[i].cases; one->run; one++) {
                        (void)snprintf(prefix, sizeof(prefix), "%s/%s", groups[i].name, one->name);
                        if (is_wanted(groups[i].name, arguments + 1, n_arguments - 1))
                                run_case(one);
                }
        return 0;
}
