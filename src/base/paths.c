/* SPDX-License-Identifier: Apache-2.0 */
#include "base/paths.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((format(printf, 2, 3))) static int put(char *path, const char *format, ...)
{
        va_list args;
        int n;

        va_start(args, format);
        n = vsnprintf(path, PATHS_MAX, format, args);
        va_end(args);
        return n < 0 || n >= PATHS_MAX ? -ENAMETOOLONG : 0;
}

/* Not for set-user-id programs, which load the gate and our NVML library in containers. */
static const char *variable(const char *name)
{
        const char *value = secure_getenv(name);

        return value && *value ? value : NULL;
}

int paths_join(char *path, const char *directory, const char *name)
{
        return put(path, "%s/%s", directory, name);
}

int paths_search(char *path, const char *program)
{
        const char *folders = getenv("PATH"), *end;
        char folder[PATHS_MAX];

        if (strchr(program, '/'))
                return put(path, "%s", program);
        for (folders = folders ? folders : "/bin:/usr/bin"; folders;
             folders = *end ? end + 1 : NULL) {
                end = folders + strcspn(folders, ":");
                if (put(folder, "%.*s", (int)(end - folders), folders) == 0 &&
                    paths_join(path, *folder ? folder : ".", program) == 0 &&
                    access(path, X_OK) == 0)
                        return 0;
        }
        return -ENOENT;
}

int paths_run(char *path)
{
        const char *given = variable("OPENVGPU_RUN");
        const char *session = variable("XDG_RUNTIME_DIR");

        if (given)
                return put(path, "%s", given);
        if (geteuid() == 0)
                return put(path, "/run/openvgpu");
        if (session)
                return put(path, "%s/openvgpu", session);
        return put(path, "/tmp/openvgpu-%u", geteuid());
}

bool paths_run_is_given(void)
{
        return variable("OPENVGPU_RUN");
}

int paths_run_client(char *path)
{
        if (!variable("OPENVGPU_RUN") && access("/run/openvgpu/" PATHS_CONTROL_SOCKET, F_OK) == 0)
                return put(path, "/run/openvgpu");
        return paths_run(path);
}

int paths_state(char *path)
{
        const char *given = variable("OPENVGPU_STATE");
        const char *state = variable("XDG_STATE_HOME");
        const char *home = variable("HOME");

        if (given)
                return put(path, "%s", given);
        if (geteuid() == 0)
                return put(path, "/var/lib/openvgpu");
        if (state)
                return put(path, "%s/openvgpu", state);
        return put(path, "%s/.local/state/openvgpu", home ? home : "/tmp");
}

int paths_private(char *path)
{
        const char *given = variable("OPENVGPU_LIB");
        char self[PATHS_MAX];
        ssize_t n;

        if (given)
                return put(path, "%s", given);

        n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        if (n < 0)
                return -errno;
        self[n] = '\0';

        /* The folder of the program, then its sibling lib/openvgpu; our helpers live in there. */
        *strrchr(self, '/') = '\0';
        if (strlen(self) > 13 && strcmp(self + strlen(self) - 13, "/lib/openvgpu") == 0)
                return put(path, "%s", self);
        if (strrchr(self, '/'))
                *strrchr(self, '/') = '\0';
        return put(path, "%s/lib/openvgpu", self);
}
