/* SPDX-License-Identifier: Apache-2.0 */
#include "cdi/specification.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/paths.h"
#include "cdi/nvidia.h"
#include "sim/host-layout.h"

/* Loaders refuse a version that they do not know: the lowest that has what is used. */
#define VERSION_LEAST  "0.3.0"
#define VERSION_DIGITS "0.5.0" /* names that begin with a digit */

/* Where things are in a container. Nothing of an image is there. */
#define INSIDE_RUN  "/run/openvgpu"
#define INSIDE_GATE "/usr/lib/openvgpu/gate"
#define INSIDE_NVML "/usr/lib/openvgpu/nvml"
#define INSIDE_SIM  "/usr/lib/openvgpu/sim"
#define INSIDE_HOST "/usr/lib/openvgpu/simulated-host"

/*
 * Of the private directory, and where they are in a container. glibc loads what ld.so.preload names after
 * what LD_PRELOAD names; that is the image's, and a variable of ours would take its place. musl does not read that file;
 * the driver's names are in a folder where musl looks for libraries and glibc by itself does not.
 */
static const struct {
        const char *name, *inside;
} files[] = {
        { "container/ld.so.preload", "/etc/ld.so.preload" },
        { "container/libmusl-cuda.so.1", "/usr/local/lib/libcuda.so.1" },
        { "container/libmusl-nvidia-ml.so.1", "/usr/local/lib/libnvidia-ml.so.1" },
};

/* Of the driver, beside its libcuda.so.1: what that or a CUDA program looks for by name. */
static const char *const driver_files[] = {
        "libcuda.so.1",        "libnvidia-ml.so.1",           "libnvidia-ptxjitcompiler.so.1",
        "libnvidia-nvvm.so.4", "libnvidia-gpucomp.so.[0-9]*", "libcudadebugger.so.1",
};

static const char *const nodes[] = {
        "/dev/nvidiactl",   "/dev/nvidia-uvm",       "/dev/nvidia-uvm-tools",
        "/dev/nvidia[0-9]", "/dev/nvidia[0-9][0-9]",
};

/* Edits: json_array_append_new() and its like take NULL and say that it failed. */

static int add(json_t *edits, const char *list, json_t *item)
{
        json_t *array = json_object_get(edits, list);

        if (!array && json_object_set_new(edits, list, array = json_array()) < 0) {
                json_decref(item);
                return -ENOMEM;
        }
        return json_array_append_new(array, item) < 0 ? -ENOMEM : 0;
}

static int add_variable(json_t *edits, const char *name, const char *value)
{
        return add(edits, "env", json_sprintf("%s=%s", name, value));
}

static int add_mount(json_t *edits, const char *outside, const char *inside,
                     const char *access_mode)
{
        return add(edits, "mounts",
                   json_pack("{ss, ss, s[s, s, s, s]}", "hostPath", outside, "containerPath",
                             inside, "options", access_mode, "nosuid", "nodev", "rbind"));
}

static int add_file(json_t *edits, const char *path)
{
        return add_mount(edits, path, path, "ro");
}

static int add_node(json_t *edits, const char *path)
{
        return add(edits, "deviceNodes", json_pack("{ss}", "path", path));
}

static int add_all(json_t *edits, const char *pattern, int (*add_one)(json_t *, const char *))
{
        glob_t found = { 0 };
        int r = glob(pattern, 0, NULL, &found);

        if (r == GLOB_NOSPACE)
                r = -ENOMEM;
        else
                r = 0;
        for (size_t i = 0; r == 0 && i < found.gl_pathc; i++)
                r = add_one(edits, found.gl_pathv[i]);
        globfree(&found);
        return r;
}

/* What all vGPUs have in common. */

/* The folder that @path is in. */
static int split(char *directory, const char *path)
{
        const char *end = strrchr(path, '/');

        if (!end || end == path || end - path >= PATHS_MAX)
                return -EINVAL;
        memcpy(directory, path, (size_t)(end - path));
        directory[end - path] = '\0';
        return 0;
}

/* At the paths of the host, where NVIDIA's toolkit does not say better. */
static int add_found_driver(json_t *edits, const struct cdi_host *host)
{
        char directory[PATHS_MAX], pattern[PATHS_MAX];
        int r = split(directory, host->driver_path);

        for (size_t i = 0; r == 0 && i < sizeof(driver_files) / sizeof(driver_files[0]); i++) {
                r = paths_join(pattern, directory, driver_files[i]);
                if (r == 0)
                        r = add_all(edits, pattern, add_file);
        }
        for (size_t i = 0; r == 0 && i < sizeof(nodes) / sizeof(nodes[0]); i++)
                r = add_all(edits, nodes[i], add_node);
        if (r == 0)
                r = add_all(edits, "/usr/bin/nvidia-smi", add_file);
        return r == 0 ? add_variable(edits, "OPENVGPU_DRIVER", host->driver_path) : r;
}

static int add_driver(json_t *edits, const struct cdi_host *host, char version[16])
{
        char driver[PATHS_MAX], needed[16];
        int r = cdi_nvidia_add(edits, host->run_directory, driver, needed);

        if (r == -ENOENT)
                return add_found_driver(edits, host);
        if (r < 0)
                return r;
        if (strverscmp(needed, version) > 0)
                strcpy(version, needed);
        return add_variable(edits, "OPENVGPU_DRIVER", driver);
}

/* The memory of simulated GPUs lies where their host says. */
static int read_memory(const char *directory, char memory[HOST_PATH_MAX])
{
        CLEANUP(fd_closep) int fd = -1;
        char path[PATHS_MAX];
        int r = paths_join(path, directory, "host");

        if (r < 0)
                return r;
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        if (pread(fd, memory, HOST_PATH_MAX, offsetof(struct host, memory)) != HOST_PATH_MAX ||
            !memchr(memory, '\0', HOST_PATH_MAX))
                return -EPROTO;
        return 0;
}

static bool is_below(const char *path, const char *folder)
{
        size_t length = strlen(folder);

        return strncmp(path, folder, length) == 0 && path[length] == '/';
}

static int add_simulation(json_t *edits, const struct cdi_host *host)
{
        char simulation[PATHS_MAX], driver[PATHS_MAX], memory[HOST_PATH_MAX];
        int r = paths_join(simulation, host->run_directory, PATHS_SIMULATION);

        if (r == 0)
                r = split(driver, host->driver_path);
        if (r == 0)
                r = read_memory(simulation, memory);
        if (r == 0)
                r = add_mount(edits, driver, INSIDE_SIM, "ro");
        if (r == 0)
                r = add_mount(edits, simulation, INSIDE_HOST, "rw");
        if (r == 0 && !is_below(memory, simulation)) /* it is mounted with that */
                r = add_mount(edits, memory, memory, "rw");
        if (r == 0)
                r = add_variable(edits, "OPENVGPU_DRIVER", INSIDE_SIM "/libcuda.so.1");
        return r == 0 ? add_variable(edits, "OPENVGPU_SIM", INSIDE_HOST) : r;
}

static int add_files(json_t *edits, const char *gate)
{
        char private[PATHS_MAX], path[PATHS_MAX];
        int r = split(private, gate);

        for (size_t i = 0; r == 0 && i < sizeof(files) / sizeof(files[0]); i++) {
                r = paths_join(path, private, files[i].name);
                if (r == 0)
                        r = add_mount(edits, path, files[i].inside, "ro");
        }
        return r;
}

/*
 * An engine lets a variable of CDI take the place of the image's: so LD_LIBRARY_PATH and LD_PRELOAD, which images set, are
 * left alone, and our NVML library comes first because it is there before anybody looks for one.
 */
static int add_common(json_t *edits, const struct cdi_host *host, char version[16])
{
        char gate[PATHS_MAX];
        int r = split(gate, host->gate_path);

        if (r == 0)
                r = add_mount(edits, gate, INSIDE_GATE, "ro");
        if (r == 0)
                r = add_mount(edits, host->nvml_path, INSIDE_NVML, "ro");
        if (r == 0)
                r = add_files(edits, gate);
        if (r == 0)
                r = add_variable(edits, "OPENVGPU_RUN", INSIDE_RUN);
        if (r == 0)
                r = host->is_simulated ? add_simulation(edits, host)
                                       : add_driver(edits, host, version);
        return r;
}

/* Of CDI a name ends with a letter or digit; ours may not. A UUID is another name of a vGPU everywhere. */
static const char *get_name(const struct cdi_vgpu *vgpu)
{
        size_t length = strlen(vgpu->name);

        return length > 0 && isalnum((unsigned char)vgpu->name[length - 1]) &&
                               strcmp(vgpu->name, CDI_NEW) != 0
                       ? vgpu->name
                       : vgpu->uuid;
}

static int make_vgpu(json_t **ret_device, const struct cdi_host *host, const struct cdi_vgpu *vgpu)
{
        CLEANUP(json_decrefp) json_t *edits = json_object();
        char door[PATHS_MAX];
        int n = snprintf(door, sizeof(door), "%s/" CDI_DOORS "/%s", host->run_directory,
                         vgpu->uuid);
        int r;

        if (n < 0 || n >= PATHS_MAX)
                return -ENAMETOOLONG;
        r = add_mount(edits, door, INSIDE_RUN, "ro");
        if (r == 0)
                r = add_variable(edits, "OPENVGPU_VGPU", vgpu->uuid);
        if (r < 0)
                return r;
        *ret_device = json_pack("{ss, sO}", "name", get_name(vgpu), "containerEdits", edits);
        return *ret_device ? 0 : -ENOMEM;
}

static int add_vgpu(json_t *devices, const struct cdi_host *host, const struct cdi_vgpu *vgpu)
{
        json_t *device;
        int r = make_vgpu(&device, host, vgpu);

        if (r < 0)
                return r;
        return json_array_append_new(devices, device) < 0 ? -ENOMEM : 0;
}

static void find_version(char version[16], const struct cdi_vgpu *vgpus, size_t n)
{
        strcpy(version, VERSION_LEAST);
        for (size_t i = 0; i < n; i++)
                if (isdigit((unsigned char)get_name(&vgpus[i])[0]))
                        strcpy(version, VERSION_DIGITS);
}

int cdi_specification_new(json_t **ret_specification, const struct cdi_host *host,
                          const struct cdi_vgpu *vgpus, size_t n)
{
        CLEANUP(json_decrefp) json_t *edits = json_object();
        CLEANUP(json_decrefp) json_t *devices = json_array();
        char version[16];
        int r;

        find_version(version, vgpus, n);
        r = add_common(edits, host, version);
        for (size_t i = 0; r == 0 && i < n; i++)
                r = add_vgpu(devices, host, &vgpus[i]);
        if (r < 0)
                return r;
        *ret_specification = json_pack("{ss, ss, sO, sO}", "cdiVersion", version, "kind", CDI_KIND,
                                       "devices", devices, "containerEdits", edits);
        return *ret_specification ? 0 : -ENOMEM;
}

/* Files. */

static int write_text(int fd, const char *text)
{
        size_t size = strlen(text);

        while (size > 0) {
                ssize_t n = write(fd, text, size);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                text += n;
                size -= (size_t)n;
        }
        return 0;
}

static int make_folder(const char *path)
{
        char directory[PATHS_MAX];

        if (split(directory, path) < 0)
                return 0; /* the working directory, or the root */
        return mkdir(directory, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

static int replace_file(const char *path, const char *text)
{
        CLEANUP(fd_closep) int fd = -1;
        char beside[PATHS_MAX];
        int n = snprintf(beside, sizeof(beside), "%s.new", path), r;

        if (n < 0 || n >= PATHS_MAX)
                return -ENAMETOOLONG;
        r = make_folder(path);
        if (r < 0)
                return r;
        (void)unlink(beside); /* of one that died meanwhile */
        fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (fd < 0)
                return -errno;
        r = write_text(fd, text);
        if (r == 0)
                r = write_text(fd, "\n");
        if (r == 0 && rename(beside, path) < 0)
                r = -errno;
        if (r < 0)
                (void)unlink(beside);
        return r;
}

int cdi_specification_write(const json_t *specification, const char *path)
{
        CLEANUP(freep) char *text = json_dumps(specification, JSON_INDENT(2));

        return text ? replace_file(path, text) : -ENOMEM;
}

char *cdi_device_new(const struct cdi_host *host, const struct cdi_vgpu *vgpu)
{
        json_t *device;
        char *text;

        if (make_vgpu(&device, host, vgpu) < 0)
                return NULL;
        text = json_dumps(device, JSON_COMPACT);
        json_decref(device);
        return text;
}

/* One of @edits and @devices for each line. */
static int join(char **ret_text, const char *version, const char *edits, const char *const *devices,
                size_t n)
{
        size_t size;
        FILE *stream = open_memstream(ret_text, &size);

        if (!stream)
                return -ENOMEM;
        (void)fprintf(stream,
                      "{\"cdiVersion\": \"%s\", \"kind\": \"" CDI_KIND "\",\n"
                      "\"containerEdits\": %s,\n\"devices\": [",
                      version, edits);
        for (size_t i = 0; i < n; i++)
                (void)fprintf(stream, "%s\n%s", i > 0 ? "," : "", devices[i]);
        (void)fputs("]}", stream);
        return fclose(stream) == 0 ? 0 : -ENOMEM;
}

int cdi_file_write(const char *path, const struct cdi_host *host, const struct cdi_vgpu *vgpus,
                   const char *const *devices, size_t n)
{
        CLEANUP(json_decrefp) json_t *edits = json_object();
        CLEANUP(freep) char *edits_text = NULL, *text = NULL;
        char version[16];
        int r;

        find_version(version, vgpus, n);
        r = add_common(edits, host, version);
        if (r < 0)
                return r;
        edits_text = json_dumps(edits, JSON_COMPACT);
        if (!edits_text)
                return -ENOMEM;
        r = join(&text, version, edits_text, devices, n);
        return r < 0 ? r : replace_file(path, text);
}
