/* SPDX-License-Identifier: Apache-2.0 */
#include "container/name.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

/* How far up conmon is looked for. */
#define PARENTS_MAX 64

/* Of an engine's file on one container: they have some ten thousand bytes. */
#define STATE_MAX ((size_t)1 << 20)

ssize_t container_read(char *text, size_t room, const char *path)
{
        CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
        size_t size = 0;
        ssize_t n;

        if (fd < 0)
                return -errno;
        while (size < room - 1 && (n = read(fd, text + size, room - 1 - size)) > 0)
                size += (size_t)n;
        text[size] = '\0';
        return (ssize_t)size;
}

static bool set(char name[CONTAINER_NAME_MAX], const char *text)
{
        name[0] = '\0';
        if (text)
                text_clean(name, CONTAINER_NAME_MAX, text);
        return name[0] != '\0';
}

/* podman: conmon -c ID ... -n NAME. */

static const char *next(const char *at, const char *end)
{
        at += strlen(at) + 1;
        return at < end ? at : NULL;
}

bool container_name_in(char name[CONTAINER_NAME_MAX], const char *id, const char *text, size_t size)
{
        const char *end = text + size, *found = NULL;
        bool is_of_it = false;

        name[0] = '\0';
        for (const char *at = text, *after; size > 0 && at; at = after) {
                after = next(at, end);
                if (after && (strcmp(at, "-c") == 0 || strcmp(at, "--cid") == 0))
                        is_of_it = strcmp(after, id) == 0;
                else if (after && (strcmp(at, "-n") == 0 || strcmp(at, "--name") == 0))
                        found = after;
        }
        return is_of_it && set(name, found);
}

struct place {
        pid_t parent;
        uid_t user;
        size_t depth; /* of its process namespace */
        bool is_conmon;
};

static bool find_place(struct place *place, pid_t pid)
{
        char path[32], text[4096], *line;

        *place = (struct place){ 0 };
        snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
        if (container_read(text, sizeof(text), path) < 0)
                return false;
        place->is_conmon = strncmp(text, "Name:\tconmon\n", 13) == 0;
        line = strstr(text, "\nPPid:");
        place->parent = line ? (pid_t)strtol(line + 6, NULL, 10) : 0;
        line = strstr(text, "\nUid:");
        place->user = line ? (uid_t)strtoul(line + 5, NULL, 10) : (uid_t)-1;
        line = strstr(text, "\nNSpid:");
        for (line = line ? line + 7 : NULL; line && *line == '\t';
             line += 1 + strcspn(line + 1, "\t\n"))
                place->depth++;
        return true;
}

/* Its arguments are what whoever started it says. */
static bool is_believed(const struct place *place)
{
        return place->is_conmon && (place->user == 0 || place->user == geteuid());
}

/* One in the container can be called conmon, too: ours is in a process namespace further out. */
bool container_name_of_podman(char name[CONTAINER_NAME_MAX], const char *id, pid_t pid)
{
        struct place place, outer;
        char path[32], text[8192];
        ssize_t size;

        name[0] = '\0';
        if (!find_place(&place, pid))
                return false;
        for (int i = 0; i < PARENTS_MAX && place.parent > 0; i++) {
                pid = place.parent;
                if (!find_place(&outer, pid))
                        return false;
                if (outer.depth < place.depth && is_believed(&outer)) {
                        snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
                        size = container_read(text, sizeof(text), path);
                        return size > 0 && container_name_in(name, id, text, (size_t)size);
                }
                place.parent = outer.parent;
        }
        return false;
}

static bool is_below(pid_t pid, pid_t first)
{
        struct place place;

        for (int i = 0; i < PARENTS_MAX && pid > 0; i++) {
                if (pid == first)
                        return true;
                if (!find_place(&place, pid))
                        return false;
                pid = place.parent;
        }
        return false;
}

static bool find_namespace(struct stat *namespace, const char *whose)
{
        char path[48];

        snprintf(path, sizeof(path), "/proc/%s/ns/pid", whose);
        return stat(path, namespace) == 0;
}

static bool is_same(const struct stat *one, const struct stat *other)
{
        return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

/* What was started in the container later is below the engine. */
static bool shares_namespace(pid_t pid, pid_t first)
{
        struct stat own, its, ours;
        char text[16], first_text[16];

        snprintf(text, sizeof(text), "%d", (int)pid);
        snprintf(first_text, sizeof(first_text), "%d", (int)first);
        return find_namespace(&own, text) && find_namespace(&its, first_text) &&
               find_namespace(&ours, "self") && is_same(&own, &its) && !is_same(&own, &ours);
}

bool container_is_with(pid_t pid, pid_t first)
{
        return first > 0 && (is_below(pid, first) || shares_namespace(pid, first));
}

/* State files. */

static json_t *load(const char *path)
{
        CLEANUP(freep) char *text = malloc(STATE_MAX);

        return text && container_read(text, STATE_MAX, path) > 0 ? json_loads(text, 0, NULL) : NULL;
}

bool container_name_of_docker(char name[CONTAINER_NAME_MAX], const char *root, const char *id,
                              pid_t *ret_first)
{
        CLEANUP(json_decrefp) json_t *state = NULL;
        char path[PATH_MAX];
        const char *text;

        name[0] = '\0';
        snprintf(path, sizeof(path), "%s/var/lib/docker/containers/%s/config.v2.json", root, id);
        state = load(path);
        text = json_string_value(json_object_get(state, "Name"));
        *ret_first =
                (pid_t)json_integer_value(json_object_get(json_object_get(state, "State"), "Pid"));
        return set(name, text && *text == '/' ? text + 1 : text);
}

static bool set_of_annotations(char name[CONTAINER_NAME_MAX], const json_t *annotations)
{
        const char *pod =
                json_string_value(json_object_get(annotations, "io.kubernetes.cri.sandbox-name"));
        const char *container =
                json_string_value(json_object_get(annotations, "io.kubernetes.cri.container-name"));
        char text[2 * CONTAINER_NAME_MAX];

        if (!container)
                return set(name, json_string_value(json_object_get(annotations, "nerdctl/name")));
        snprintf(text, sizeof(text), "%s%s%s", pod ? pod : "", pod ? "/" : "", container);
        return set(name, text);
}

static pid_t read_first(const char *folder)
{
        char path[PATH_MAX], text[16];

        snprintf(path, sizeof(path), "%s/init.pid", folder);
        return container_read(text, sizeof(text), path) > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
}

/* The folder between is the name of a namespace of containerd. */
bool container_name_of_containerd(char name[CONTAINER_NAME_MAX], const char *root, const char *id,
                                  pid_t *ret_first)
{
        CLEANUP(json_decrefp) json_t *state = NULL;
        char pattern[PATH_MAX], path[PATH_MAX];
        glob_t found;

        name[0] = '\0';
        snprintf(pattern, sizeof(pattern), "%s/run/containerd/io.containerd.runtime.v2.task/*/%s",
                 root, id);
        if (glob(pattern, 0, NULL, &found) != 0)
                return false;
        snprintf(path, sizeof(path), "%s/config.json", found.gl_pathv[0]);
        state = load(path);
        *ret_first = read_first(found.gl_pathv[0]);
        globfree(&found);
        return set_of_annotations(name, json_object_get(state, "annotations"));
}
