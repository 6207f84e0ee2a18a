/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The manifest of an image: any bytes, and the same with a checksum that is right, so that what is
 * behind it is reached. Whatever is accepted must stand when it is written and read again.
 */
#include <assert.h>
#include <jansson.h>
#include <string.h>

#include "base/cleanup.h"
#include "fuzz/target.h"
#include "image/manifest-json.h"
#include "image/manifest.h"

static void check(const struct image_manifest *manifest)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < manifest->n_processes; i++)
                for (size_t k = 0; k < manifest->processes[i].n_allocations; k++)
                        sum += manifest->processes[i].allocations[k].size;
        if (manifest->has_parent) {
                assert(manifest->has_memory && manifest->memory.inherited);
                assert(*manifest->parent.directory && *manifest->parent.id);
        }
        assert(image_manifest_can_name(manifest->parent.directory));
        if (!manifest->has_memory)
                return;
        assert(!manifest->has_hashes || manifest->memory.chunk_size == IMAGE_CHUNK_SIZE);
        assert(sum == manifest->memory.size);
        for (size_t i = 0; i < manifest->memory.n_chunks; i++) {
                const struct image_chunk *chunk = &manifest->memory.chunks[i];

                assert(image_table_length(&manifest->memory, i) > 0);
                if (image_table_is_inherited(&manifest->memory, i)) {
                        assert(manifest->has_parent && chunk->stored == 0);
                        continue;
                }
                assert(chunk->stored <= image_table_length(&manifest->memory, i));
                assert(chunk->offset + chunk->stored <= manifest->memory.file_size);
        }
}

static void parse(const char *text, size_t size, int levels)
{
        CLEANUP(freep) char *again = NULL;
        struct image_error error = { 0 };
        struct image_manifest manifest;
        int r = image_manifest_parse(&manifest, "x", text, size, &error);

        assert((r < 0) == (error.code < 0));
        if (r < 0)
                return;
        check(&manifest);
        again = image_manifest_format(&manifest);
        image_manifest_deinit(&manifest);
        assert(again);
        if (levels > 0)
                parse(again, strlen(again), levels - 1);
}

static void parse_with_checksum(const char *data, size_t size)
{
        CLEANUP(json_decrefp) json_t *whole = json_loadb(data, size, 0, NULL);
        json_t *image = json_object_get(whole, "image");
        char checksum[MANIFEST_CHECKSUM_MAX];
        CLEANUP(freep) char *text = NULL;

        if (!image || !manifest_checksum(checksum, image))
                return;
        json_object_set_new(whole, "checksum", json_string(checksum));
        text = json_dumps(whole, JSON_COMPACT);
        if (text)
                parse(text, strlen(text), 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        parse((const char *)data, size, 1);
        parse_with_checksum((const char *)data, size);
        return 0;
}
