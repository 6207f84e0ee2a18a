/* SPDX-License-Identifier: Apache-2.0 */
#include "image/parent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

#define HINT_FULL "dump without --parent"

static const struct image_manifest *manifest_of(const struct image_parent *parent)
{
        return &parent->chain.links[0]->manifest;
}

static int check_use(const struct image_parent *parent, struct image_error *error)
{
        const struct image_manifest *manifest = manifest_of(parent);
        const char *path = parent->chain.links[0]->directory.path;

        if (!manifest->has_memory)
                return image_fail(error, -EINVAL, HINT_FULL,
                                  "%s can be no parent: it has no memory of a vGPU in it", path);
        if (!manifest->has_hashes || !*manifest->id)
                return image_fail(error, -EINVAL, HINT_FULL,
                                  "%s can be no parent: an older vgpu has made it, without hashes",
                                  path);
        if (parent->chain.n == IMAGE_CHAIN_MAX)
                return image_fail(error, -EMLINK, HINT_FULL,
                                  "%s can be no parent: it is the last of %d images, each of which "
                                  "needs the one before",
                                  path, IMAGE_CHAIN_MAX);
        return 0;
}

static int compare(const void *a, const void *b, void *userdata)
{
        const struct hash_value *values = userdata;
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
        int r = memcmp(&values[x], &values[y], sizeof(*values));

        return r != 0 ? r : (x > y) - (x < y);
}

static int sort(struct image_parent *parent, struct image_error *error)
{
        size_t n = parent->hashes.n;

        parent->order = calloc(n + 1, sizeof(*parent->order));
        if (!parent->order)
                return image_fail(error, -ENOMEM, "", "not enough memory for %zu hashes", n);
        for (size_t i = 0; i < n; i++)
                parent->order[i] = (uint32_t)i;
        qsort_r(parent->order, n, sizeof(*parent->order), compare, parent->hashes.values);
        return 0;
}

int image_parent_open(struct image_parent *ret_parent, const char *path, struct image_error *error)
{
        const struct image_link *link;
        int r;

        *ret_parent = (struct image_parent){ .order = NULL };
        r = image_chain_open(&ret_parent->chain, path, error);
        if (r < 0 && !*error->hint)
                snprintf(error->hint, sizeof(error->hint), "%s",
                         "name an image that this vGPU was dumped to before, or " HINT_FULL);
        if (r < 0)
                return r;
        link = ret_parent->chain.links[0];
        r = check_use(ret_parent, error);
        if (r == 0)
                r = image_hashes_read(&ret_parent->hashes, link->directory.fd, link->directory.path,
                                      link->manifest.memory.n_chunks,
                                      link->manifest.hashes_checksum, error);
        if (r == 0)
                r = sort(ret_parent, error);
        if (r < 0)
                image_parent_close(ret_parent);
        return r;
}

void image_parent_close(struct image_parent *parent)
{
        image_chain_close(&parent->chain);
        image_hashes_deinit(&parent->hashes);
        free(parent->order);
        parent->order = NULL;
}

/* The checksums were made without the key: one more thing that must be the same. */
static bool is_same(const struct image_parent *parent, uint32_t own,
                    const struct image_table *table, size_t chunk, const struct hash_value *value)
{
        const struct image_table *parents = &manifest_of(parent)->memory;

        return hash_is_equal(&parent->hashes.values[own], value) &&
               parents->chunks[own].checksum == table->chunks[chunk].checksum &&
               image_table_length(parents, own) == image_table_length(table, chunk);
}

uint32_t image_parent_find(const struct image_parent *parent, const struct image_table *table,
                           size_t chunk, const struct hash_value *value)
{
        size_t low = 0, high = parent->hashes.n;

        /* Mostly it is where it was. Else something was allocated or freed before it. */
        if (chunk < high && is_same(parent, (uint32_t)chunk, table, chunk, value))
                return (uint32_t)chunk;
        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (memcmp(&parent->hashes.values[parent->order[middle]], value, sizeof(*value)) <
                    0)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low < parent->hashes.n && is_same(parent, parent->order[low], table, chunk, value))
                return parent->order[low];
        return IMAGE_CHUNK_OWN;
}

/* What is behind the descriptor has the name that the new image is going to look for. */
static bool is_there(const struct image_directory *directory)
{
        struct stat open, named;

        return fstat(directory->fd, &open) == 0 && stat(directory->path, &named) == 0 &&
               open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

int image_parent_describe(const struct image_parent *parent, struct image_manifest *manifest,
                          struct image_error *error)
{
        const struct image_link *link = parent->chain.links[0];
        CLEANUP(freep) char *path = NULL;

        for (size_t i = 0; i < parent->chain.n; i++) {
                const struct image_directory *directory = &parent->chain.links[i]->directory;

                if (!is_there(directory))
                        return image_fail(error, -ENOENT, HINT_FULL,
                                          "%s, which the image needs, was removed or replaced "
                                          "meanwhile",
                                          directory->path);
        }
        path = realpath(link->directory.path, NULL);
        if (!path || strlen(path) >= sizeof(manifest->parent.directory))
                return image_fail_file(error, path ? -ENAMETOOLONG : -errno, "name",
                                       link->directory.path);
        if (!image_manifest_can_name(path))
                return image_fail(error, -EINVAL, "rename it",
                                  "%s can be no parent: its name, or that of a directory above it, "
                                  "has control characters in it or is no UTF-8",
                                  link->directory.path);
        manifest->has_parent = true;
        strcpy(manifest->parent.directory, path);
        strcpy(manifest->parent.id, link->manifest.id);
        manifest->parent.checksum = link->manifest.checksum;
        return 0;
}
