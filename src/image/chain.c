/* SPDX-License-Identifier: Apache-2.0 */
#include "image/chain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static void free_link(struct image_link *link)
{
        image_manifest_deinit(&link->manifest);
        image_directory_close(&link->directory);
        free(link);
}

/* Opens one more image, which becomes the chain's last. */
static int add_link(struct image_chain *chain, const char *path, struct image_error *error)
{
        struct image_link *link = calloc(1, sizeof(*link));
        int r;

        if (!link)
                return image_fail(error, -ENOMEM, "", "not enough memory for an image");
        r = image_directory_open(&link->directory, path, &link->manifest, error);
        if (r < 0) {
                free(link);
                return r;
        }
        chain->files[chain->n].fd = -1;
        chain->links[chain->n++] = link;
        return 0;
}

static void drop_link(struct image_chain *chain)
{
        free_link(chain->links[--chain->n]);
}

/* Parents. */

/* "IMAGE/../NAME", whatever IMAGE is: the parent's name beside the image. */
static void name_sibling(char path[PATH_MAX + 8], const struct image_link *child)
{
        const char *name = strrchr(child->manifest.parent.directory, '/');
        const char *slash = strrchr(child->directory.path, '/');

        snprintf(path, PATH_MAX + 8, "%.*s%s", slash ? (int)(slash + 1 - child->directory.path) : 0,
                 child->directory.path, name ? name + 1 : child->manifest.parent.directory);
}

static int fail_parent(const struct image_link *child, int code, const char *path, const char *what,
                       struct image_error *error)
{
        char hint[sizeof(error->hint)];

        snprintf(
                hint, sizeof(hint),
                "put the parent there, or beside %.96s; without it only an older image can be loaded",
                child->directory.path);
        return image_fail(error, code, hint, "%.200s needs its parent %.200s, which %s",
                          child->directory.path, path, what);
}

/* Is the last one the image that @child was made from, as it was? */
static const char *tell_difference(const struct image_chain *chain, const struct image_link *child)
{
        const struct image_manifest *found = &chain->links[chain->n - 1]->manifest;

        if (strcmp(found->id, child->manifest.parent.id) != 0)
                return "is another image now: its id is not the one it was made from";
        if (found->checksum != child->manifest.parent.checksum || !found->has_memory)
                return "was changed since: its manifest is not the one it was made from";
        return NULL;
}

/* Returns 0, or why @path is not the parent; -ENOENT, there is nothing. */
static int try_parent(struct image_chain *chain, const char *path, struct image_error *error)
{
        const struct image_link *child = chain->links[chain->n - 1];
        const char *difference;
        int r = add_link(chain, path, error);

        if (r < 0)
                return r;
        difference = tell_difference(chain, child);
        if (!difference)
                return 0;
        drop_link(chain);
        return fail_parent(child, -EBADMSG, path, difference, error);
}

static int add_parent(struct image_chain *chain, struct image_error *error)
{
        const struct image_link *child = chain->links[chain->n - 1];
        const char *path = child->manifest.parent.directory;
        struct image_error first = { 0 }, second = { 0 };
        char sibling[PATH_MAX + 8];
        int r;

        if (chain->n == IMAGE_CHAIN_MAX)
                return image_fail(error, -EMLINK, "load an older image",
                                  "%s needs more than %d images, one behind the other",
                                  chain->links[0]->directory.path, IMAGE_CHAIN_MAX);
        r = try_parent(chain, path, &first);
        if (r == 0)
                return 0;
        name_sibling(sibling, child);
        if (try_parent(chain, sibling, &second) == 0)
                return 0;
        if (r == -ENOENT && second.code != -ENOENT) {
                *error = second;
                return error->code;
        }
        if (r != -ENOENT) {
                *error = first;
                return error->code;
        }
        return fail_parent(child, r, path, "is not there", error);
}

/* The table. */

/* Follows @chunk of the image to the one that has it. */
static int resolve_chunk(struct image_chain *chain, size_t chunk, struct image_error *error)
{
        const struct image_table *table = &chain->links[0]->manifest.memory;
        uint32_t checksum = table->chunks[chunk].checksum;
        size_t length = image_table_length(table, chunk), at = chunk, link = 0;

        while (image_table_is_inherited(table, at)) {
                at = table->inherited[at];
                table = &chain->links[++link]->manifest.memory;
                if (at >= table->n_chunks || image_table_length(table, at) != length ||
                    table->chunks[at].checksum != checksum)
                        return image_fail(error, -EBADMSG,
                                          "the image cannot be used; load an older one",
                                          "%s, chunk %zu: it is not what %s has as its chunk %zu",
                                          chain->links[0]->directory.path, chunk,
                                          chain->links[link]->directory.path, at);
        }
        chain->table.chunks[chunk] = table->chunks[at];
        chain->of_chunk[chunk] = (uint8_t)link;
        return 0;
}

static int resolve(struct image_chain *chain, struct image_error *error)
{
        const struct image_table *own = &chain->links[0]->manifest.memory;
        int r = 0;

        chain->table = *own;
        chain->table.inherited = NULL;
        chain->table.chunks = calloc(own->n_chunks + 1, sizeof(*own->chunks));
        chain->of_chunk = calloc(own->n_chunks + 1, 1);
        if (!chain->table.chunks || !chain->of_chunk)
                return image_fail(error, -ENOMEM, "", "not enough memory for the list of chunks");
        /* Its threads must be able to unpack what any of them has packed. */
        for (size_t i = 0; i < chain->n; i++)
                if (chain->links[i]->manifest.memory.compression > chain->table.compression)
                        chain->table.compression = chain->links[i]->manifest.memory.compression;
        for (size_t i = 0; r == 0 && i < own->n_chunks; i++)
                r = resolve_chunk(chain, i, error);
        return r;
}

static int open_files(struct image_chain *chain, struct image_error *error)
{
        const struct image_data_options options = { .threads = 0 };
        int r = 0;

        for (size_t i = 0; r == 0 && i < chain->n; i++) {
                const struct image_directory *directory = &chain->links[i]->directory;

                r = image_data_open(directory->fd, directory->path, IMAGE_DATA_FILE,
                                    &chain->links[i]->manifest.memory, &options, &chain->files[i],
                                    error);
        }
        return r;
}

int image_chain_open(struct image_chain *ret_chain, const char *path, struct image_error *error)
{
        int r;

        *ret_chain = (struct image_chain){ .n = 0 };
        r = add_link(ret_chain, path, error);
        while (r == 0 && ret_chain->links[ret_chain->n - 1]->manifest.has_parent)
                r = add_parent(ret_chain, error);
        if (r == 0 && ret_chain->links[0]->manifest.has_memory) {
                r = resolve(ret_chain, error);
                if (r == 0)
                        r = open_files(ret_chain, error);
        }
        if (r < 0)
                image_chain_close(ret_chain);
        return r;
}

void image_chain_close(struct image_chain *chain)
{
        for (; chain->n > 0; drop_link(chain))
                fd_close(chain->files[chain->n - 1].fd);
        image_table_deinit(&chain->table);
        free(chain->of_chunk);
        chain->of_chunk = NULL;
}

int image_chain_read(const struct image_chain *chain, const struct iovec *pieces, size_t n_pieces,
                     const struct image_data_options *options, struct image_data_report *ret_report,
                     struct image_error *error)
{
        const struct image_data_source source = { &chain->table, chain->files, chain->of_chunk };

        return image_data_read_from(&source, pieces, n_pieces, options, ret_report, error);
}

int image_chain_check_owners(const struct image_chain *chain, struct image_error *error)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < chain->n; i++)
                r = image_directory_check_owners(&chain->links[i]->directory, error);
        return r;
}
