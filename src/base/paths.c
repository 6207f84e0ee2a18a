/* SPDX-License-Identifier: Apache-2.0 */
#include "base/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"

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
                return put(path, PATHS_RUN_MACHINE);
        if (session)
                return put(path, "%s/openvgpu", session);
        return put(path, "/tmp/openvgpu-%u", geteuid());
}

bool paths_run_is_given(void)
{
        return variable("OPENVGPU_RUN");
}

enum answer { ANSWER_NONE, ANSWER_ENDED, ANSWER_THERE };

/* The socket of a manager that has ended stays. One that may not be asked is there. */
static enum answer ask(const char *directory)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        CLEANUP(fd_closep) int fd = -1;

        if (snprintf(address.sun_path, sizeof(address.sun_path), "%s/" PATHS_CONTROL_SOCKET,
                     directory) >= (int)sizeof(address.sun_path) ||
            access(address.sun_path, F_OK) < 0)
                return ANSWER_NONE;
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
                return ANSWER_THERE;
        return errno == ECONNREFUSED ? ANSWER_ENDED : ANSWER_THERE;
}

/* In /tmp anybody may have made a folder of our name. */
static bool is_own(const char *directory)
{
        CLEANUP(fd_closep) int fd = open(directory, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct stat status;

        return fd >= 0 && fstat(fd, &status) == 0 && status.st_uid == geteuid();
}

const char *paths_choose(const char *own, const char *machine)
{
        enum answer mine = is_own(own) ? ask(own) : ANSWER_NONE, others;

        if (mine == ANSWER_THERE)
                return own;
        others = ask(machine);
        if (others == ANSWER_THERE || (others == ANSWER_ENDED && mine == ANSWER_NONE))
                return machine;
        return own;
}

bool paths_is_passed_by(const char *own, const char *machine)
{
        return is_own(own) && ask(own) == ANSWER_ENDED && ask(machine) == ANSWER_THERE;
}

int paths_run_client(char *path)
{
        char own[PATHS_MAX];
        int r = paths_run(own), saved_errno = errno;

        if (r < 0)
                return r;
        if (variable("OPENVGPU_RUN") || geteuid() == 0)
                return put(path, "%s", own);
        r = put(path, "%s", paths_choose(own, PATHS_RUN_MACHINE));
        errno = saved_errno;
        return r;
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
