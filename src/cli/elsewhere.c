/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/elsewhere.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <openvgpu/client.h>
#include <openvgpu/manager.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/paths.h"

DEFINE_CLEANUP(struct vgpu_client *, vgpu_client_free);
DEFINE_CLEANUP(struct vgpu_manager *, vgpu_manager_free);

/* There is none where /proc is not mounted. */
static void file_close(FILE *file)
{
        if (file)
                (void)fclose(file);
}

DEFINE_CLEANUP(FILE *, file_close);

/* A person waits for the hint; whoever hangs has the least of it. */
#define ANSWER_MS      300
#define SEARCH_NS      2000000000u
#define CANDIDATES_MAX 64

/* The third number of a line of the kernel's list: the socket accepts connections. */
#define FLAG_ACCEPTS 0x10000

struct candidate {
        char directory[PATHS_MAX];
        uid_t uid;
};

/* What can be typed as it is, and cannot disturb a terminal. */
static bool is_plain(const char *path)
{
        static const char letters[] =
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                "/._-";

        return path[0] == '/' && path[strspn(path, letters)] == '\0';
}

/* Ours before root's. */
static int get_rank(const struct candidate *candidate)
{
        return candidate->uid == geteuid() ? 0 : 1;
}

static int compare(const void *a, const void *b)
{
        const struct candidate *one = a, *other = b;
        int difference = get_rank(one) - get_rank(other);

        return difference ? difference : strcmp(one->directory, other->directory);
}

/* The path of a socket that accepts connections and is called as a manager's; NULL: another one. */
static char *parse_line(char *line)
{
        static const char name[] = "/" PATHS_CONTROL_SOCKET;
        unsigned int flags = 0;
        int at = 0;
        char *path;

        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%*s %*s %*s %x %*s %*s %*s %n", &flags, &at) != 1 || at == 0)
                return NULL;
        path = line + at;
        if (!(flags & FLAG_ACCEPTS) || strlen(path) <= strlen(name) || strlen(path) >= PATHS_MAX ||
            strcmp(path + strlen(path) - strlen(name), name) != 0)
                return NULL;
        return is_plain(path) ? path : NULL;
}

static size_t find(struct candidate *candidates)
{
        CLEANUP(file_closep) FILE *list = fopen("/proc/net/unix", "re");
        char line[2 * PATHS_MAX];
        size_t n = 0;

        while (list && n < CANDIDATES_MAX && fgets(line, sizeof(line), list)) {
                char *path = parse_line(line);
                struct stat stat;

                /* Of another mount namespace, or gone. */
                if (!path || lstat(path, &stat) < 0 || !S_ISSOCK(stat.st_mode))
                        continue;
                if (stat.st_uid != geteuid() && stat.st_uid != 0)
                        continue; /* nobody's business, and who follows the hint would have to trust them */
                *strrchr(path, '/') = '\0';
                snprintf(candidates[n].directory, sizeof(candidates[n].directory), "%s", path);
                candidates[n++].uid = stat.st_uid;
        }
        return n;
}

static bool does_answer(const struct candidate *candidate)
{
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = NULL;
        CLEANUP(vgpu_manager_freep) struct vgpu_manager *manager = NULL;

        if (vgpu_client_new(&client, candidate->directory) < 0)
                return false;
        vgpu_client_set_timeout_ms(client, ANSWER_MS);
        return vgpu_manager_lookup(client, &manager) == 0;
}

/* Who has chosen a directory means the vGPUs there: those of another vgpud may have the same names. */
static void write_hint(char *hint, size_t room, const struct candidate *candidate)
{
        const char *whose = candidate->uid == geteuid() ? "your" : "root's";

        if (paths_run_is_given())
                snprintf(hint, room,
                         "start vgpud there (%s other vgpud, with other vGPUs, is in %s)", whose,
                         candidate->directory);
        else
                snprintf(hint, room, "%s vgpud answers in %s: set OPENVGPU_RUN=%s", whose,
                         candidate->directory, candidate->directory);
}

bool elsewhere_hint(char *hint, size_t room)
{
        struct candidate candidates[CANDIDATES_MAX];
        uint64_t until_ns = clock_now(CLOCK_MONOTONIC) + SEARCH_NS;
        size_t n = find(candidates);

        qsort(candidates, n, sizeof(candidates[0]), compare);
        for (size_t i = 0; i < n && clock_now(CLOCK_MONOTONIC) < until_ns; i++) {
                if (!does_answer(&candidates[i]))
                        continue;
                write_hint(hint, room, &candidates[i]);
                return true;
        }
        return false;
}
