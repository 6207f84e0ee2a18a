/* SPDX-License-Identifier: Apache-2.0 */
#include "image/criu.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

#define OUTPUT_MAX 4096
#define LOG_NAME   "log"

#define HINT_INSTALL \
        "install CRIU 4.1 or newer (Debian 13: apt install criu), or name one with --criu"

extern char **environ;

/* Running. */

/* The last bytes of what it says on both streams. Returns the exit status, or a negative errno. */
static int run_criu(const char *const arguments[], char output[OUTPUT_MAX])
{
        posix_spawn_file_actions_t actions;
        char *words[32];
        CLEANUP(fd_closep) int from = -1;
        int ends[2], status, r;
        size_t size = 0;
        ssize_t n;
        pid_t pid;

        if (pipe2(ends, O_CLOEXEC) < 0)
                return -errno;
        from = ends[0];
        memcpy(words, arguments, sizeof(words)); /* the interface lacks a const */
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
        r = -posix_spawnp(&pid, words[0], &actions, NULL, words, environ);
        posix_spawn_file_actions_destroy(&actions);
        fd_close(ends[1]);
        if (r < 0)
                return r;

        while ((n = read(from, output + size, OUTPUT_MAX - 1 - size)) != 0) {
                if (n < 0 && errno != EINTR)
                        break;
                size += n > 0 ? (size_t)n : 0;
                if (size > OUTPUT_MAX / 2) { /* the end is what counts */
                        memmove(output, output + size - OUTPUT_MAX / 4, OUTPUT_MAX / 4);
                        size = OUTPUT_MAX / 4;
                }
        }
        output[size] = '\0';
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return -errno;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The last line with @word in it, else the last at all; without what CRIU puts before it. */
static void find_reason(char *reason, size_t room, const char *text, const char *word)
{
        const char *found = NULL, *at, *end;

        for (at = text; *at; at = *end ? end + 1 : end) {
                const char *hit = strstr(at, word);

                end = strchrnul(at, '\n');
                if (end > at && (!found || (hit && hit < end)))
                        found = at;
        }
        if (!found)
                found = "it says nothing";
        if (*found == '(' && (at = strstr(found, ") ")))
                found = at + 2;
        snprintf(reason, room, "%.*s", (int)(strchrnul(found, '\n') - found), found);
}

/* Finding. */

static const char *const usual_places[] = { "criu", "/usr/sbin/criu", "/usr/local/sbin/criu",
                                            "/sbin/criu" };

static int try_version(struct criu *criu, const char *path, char output[OUTPUT_MAX])
{
        const char *const arguments[32] = { path, "--version" };
        const char *version;
        int r = run_criu(arguments, output);

        if (r < 0 || r == 127)
                return -ENOENT;
        version = strstr(output, "Version: ");
        if (r != 0)
                return -ENOEXEC;
        if (!version || sscanf(version, "Version: %31s", criu->version) != 1)
                return -EBADMSG;
        snprintf(criu->path, sizeof(criu->path), "%s", path);
        return 0;
}

static int find_program(struct criu *criu, const char *wanted, struct image_error *error)
{
        size_t n = wanted ? 1 : sizeof(usual_places) / sizeof(usual_places[0]);
        char output[OUTPUT_MAX] = "", reason[256];
        int r = -ENOENT;

        for (size_t i = 0; i < n && r == -ENOENT; i++)
                r = try_version(criu, wanted ? wanted : usual_places[i], output);
        if (r == -ENOENT)
                return image_fail(error, r, HINT_INSTALL, "there is no CRIU%s%s",
                                  wanted ? " at " : " here", wanted ? wanted : "");
        if (r < 0) {
                find_reason(reason, sizeof(reason), output, "rror");
                return image_fail(error, r, HINT_INSTALL,
                                  r == -EBADMSG ? "%s is not CRIU: it says \"%s\""
                                                : "%s does not start: %s",
                                  wanted ? wanted : "criu", reason);
        }
        return 0;
}

static int check_version(const struct criu *criu, struct image_error *error)
{
        int major = 0, minor = 0;

        if (sscanf(criu->version, "%d.%d", &major, &minor) == 2 &&
            (major > CRIU_VERSION_MIN_MAJOR ||
             (major == CRIU_VERSION_MIN_MAJOR && minor >= CRIU_VERSION_MIN_MINOR)))
                return 0;
        return image_fail(error, -EOPNOTSUPP, HINT_INSTALL,
                          "%s is CRIU %s; %d.%d is the oldest that works on present kernels",
                          criu->path, criu->version, CRIU_VERSION_MIN_MAJOR,
                          CRIU_VERSION_MIN_MINOR);
}

static int check_machine(const struct criu *criu, struct image_error *error)
{
        const char *const arguments[32] = { criu->path, "check" };
        char output[OUTPUT_MAX] = "", reason[256];
        int r = run_criu(arguments, output);

        if (r == 0)
                return 0;
        find_reason(reason, sizeof(reason), output, "rror");
        return image_fail(error, r < 0 ? r : -EPERM,
                          geteuid() == 0 ? "'criu check' says more" : "run it as root",
                          "CRIU %s does not work here: %s", criu->version, reason);
}

int criu_find(struct criu *ret_criu, const char *wanted, struct image_error *error)
{
        int r = find_program(ret_criu, wanted, error);

        if (r == 0)
                r = check_version(ret_criu, error);
        return r == 0 ? check_machine(ret_criu, error) : r;
}

/* Dump and restore. */

/* What its log says went wrong; CRIU's own words, for nobody else knows. */
static void read_log(const char *work, char output[OUTPUT_MAX])
{
        char path[PATH_MAX];
        ssize_t n;
        CLEANUP(fd_closep) int fd = -1;

        snprintf(path, sizeof(path), "%s/" LOG_NAME, work);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return;
        (void)lseek(fd, -(OUTPUT_MAX - 1), SEEK_END); /* a shorter one is read from its start */
        n = read(fd, output, OUTPUT_MAX - 1);
        if (n > 0)
                output[n] = '\0';
}

/* Log and statistics go to a folder of their own, which is removed. */
static void remove_work(const char *work)
{
        static const char *const files[] = { LOG_NAME, "stats-dump", "stats-restore" };
        char path[PATH_MAX];

        for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
                snprintf(path, sizeof(path), "%s/%s", work, files[i]);
                (void)unlink(path);
        }
        (void)rmdir(work);
}

/* The first error in the log is the cause; what follows it are consequences. */
static void find_cause(char *reason, size_t room, const char *text)
{
        const char *at = text;

        while ((at = strstr(at, "Error (")) && strstr(at, "RLIMIT_NOFILE") &&
               strstr(at, "RLIMIT_NOFILE") < strchrnul(at, '\n'))
                at++;
        find_reason(reason, room, at ? at : text, "Error (");
        if (at)
                snprintf(reason, room, "%.*s", (int)(strchrnul(at, '\n') - at), at);
}

/* What we know to do about what it says. */
static const char *hint_for(const char *reason)
{
        static const struct {
                const char *words, *hint;
        } hints[] = {
                { "No space left on device",
                  "make room on that file system, or choose another one" },
                { "Can't dump ghost file",
                  "the process has deleted a large file that it still uses: write 'ghost-limit 1G' to "
                  "/etc/criu/default.conf" },
                { "Connected TCP socket",
                  "write 'tcp-established' to /etc/criu/default.conf, if the other side will wait" },
                { "External socket is used",
                  "a socket to a program outside of the tree: end that connection first" },
                { "Can't fork for",
                  "another process has its number: end that process, or load the image elsewhere" },
        };

        for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++)
                if (strstr(reason, hints[i].words))
                        return hints[i].hint;
        return "see docs/checkpoint-images.md, and CRIU's web pages";
}

/* @place: absolute, for CRIU looks from another directory. It would load a plugin from an image, too. */
static int act(const struct criu *criu, const char *action, const char *place,
               const char *const options[], struct image_error *error)
{
        char work[] = "/tmp/vgpu-criu-XXXXXX", output[OUTPUT_MAX] = "", reason[256];
        const char *arguments[32] = { criu->path, action,       "--images-dir", place, "--libdir",
                                      work,       "--log-file", LOG_NAME,       "-v2", "--work-dir",
                                      work };
        size_t n = 11;
        int r;

        if (!mkdtemp(work))
                return image_fail_file(error, -errno, "make a folder in", "/tmp");
        for (size_t i = 0; options[i]; i++)
                arguments[n++] = options[i];
        r = run_criu(arguments, output);
        if (r != 0) {
                read_log(work, output);
                find_cause(reason, sizeof(reason), output);
        }
        remove_work(work);
        if (r == 0)
                return 0;
        return image_fail(error, -EIO, hint_for(reason), "criu %s failed: %s", action, reason);
}

int criu_dump(const struct criu *criu, const char *folder, pid_t pid, bool is_shell_job,
              struct image_error *error)
{
        CLEANUP(freep) char *place = realpath(folder, NULL);
        char number[16];
        const char *const options[] = { "--leave-stopped",
                                        "--file-locks",
                                        "--tree",
                                        number,
                                        is_shell_job ? "--shell-job" : NULL,
                                        NULL };

        if (!place)
                return image_fail_file(error, -errno, "open", folder);
        snprintf(number, sizeof(number), "%d", (int)pid);
        return act(criu, "dump", place, options, error);
}

/* By the descriptor: what was checked is what is used, whatever becomes of the path. */
int criu_restore(const struct criu *criu, int folder, bool is_shell_job, struct image_error *error)
{
        char place[48];
        const char *const options[] = { "--restore-detached", "--file-locks",
                                        is_shell_job ? "--shell-job" : NULL, NULL };

        snprintf(place, sizeof(place), "/proc/%d/fd/%d", (int)getpid(), folder);
        return act(criu, "restore", place, options, error);
}
