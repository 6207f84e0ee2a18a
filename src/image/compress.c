/* SPDX-License-Identifier: Apache-2.0 */
#include "image/compress.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "image-config.h"

static const char *const names[] = {
        [IMAGE_COMPRESSION_NONE] = "none",
        [IMAGE_COMPRESSION_ZSTD] = "zstd",
};

const char *compress_name(enum image_compression compression)
{
        return names[compression];
}

int compress_find(enum image_compression *ret_compression, const char *name)
{
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (strcmp(names[i], name) == 0) {
                        *ret_compression = (enum image_compression)i;
                        return 0;
                }
        return -EINVAL;
}

bool compress_is_built(enum image_compression compression)
{
        return compression == IMAGE_COMPRESSION_NONE || IMAGE_HAS_ZSTD;
}

#if IMAGE_HAS_ZSTD
#include <zstd.h>

struct compressor {
        ZSTD_CCtx *pack;
        ZSTD_DCtx *unpack;
};

struct compressor *compressor_free(struct compressor *compressor)
{
        if (!compressor)
                return NULL;
        ZSTD_freeCCtx(compressor->pack);
        ZSTD_freeDCtx(compressor->unpack);
        free(compressor);
        return NULL;
}

DEFINE_CLEANUP(struct compressor *, compressor_free);

int compressor_new(struct compressor **ret_compressor, enum image_compression compression,
                   int level)
{
        CLEANUP(compressor_freep) struct compressor *compressor = NULL;

        if (compression == IMAGE_COMPRESSION_NONE) {
                *ret_compressor = NULL;
                return 0;
        }
        compressor = calloc(1, sizeof(*compressor));
        if (!compressor)
                return -ENOMEM;
        compressor->pack = ZSTD_createCCtx();
        compressor->unpack = ZSTD_createDCtx();
        if (!compressor->pack || !compressor->unpack)
                return -ENOMEM;
        if (ZSTD_isError(ZSTD_CCtx_setParameter(compressor->pack, ZSTD_c_compressionLevel, level)))
                return -EINVAL;
        *ret_compressor = TAKE(compressor);
        return 0;
}

size_t compressor_pack(struct compressor *compressor, void *to, const void *from, size_t size)
{
        size_t n = ZSTD_compress2(compressor->pack, to, size - 1, from, size);

        return ZSTD_isError(n) ? 0 : n;
}

int compressor_unpack(struct compressor *compressor, void *to, size_t to_size, const void *from,
                      size_t from_size)
{
        size_t n = ZSTD_decompressDCtx(compressor->unpack, to, to_size, from, from_size);

        return ZSTD_isError(n) || n != to_size ? -EBADMSG : 0;
}
#else
struct compressor *compressor_free(struct compressor *compressor)
{
        (void)compressor;
        return NULL;
}

int compressor_new(struct compressor **ret_compressor, enum image_compression compression,
                   int level)
{
        (void)level;
        *ret_compressor = NULL;
        return compress_is_built(compression) ? 0 : -EOPNOTSUPP;
}

size_t compressor_pack(struct compressor *compressor, void *to, const void *from, size_t size)
{
        (void)compressor, (void)to, (void)from, (void)size;
        return 0;
}

int compressor_unpack(struct compressor *compressor, void *to, size_t to_size, const void *from,
                      size_t from_size)
{
        (void)compressor, (void)to, (void)to_size, (void)from, (void)from_size;
        return -EBADMSG;
}
#endif
