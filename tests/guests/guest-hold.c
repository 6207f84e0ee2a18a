/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest that holds what it is told, by words on its standard input:
 *
 *     guest-hold [SIZE]
 *
 *     device      SIZE bytes of device memory, 16 MiB unless said otherwise
 *     managed     as many of managed memory
 *     imported    a piece of memory that it exports to itself
 *     nothing     frees all of that
 *
 * It prints "ready", and each word again when that is done.
 */
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "tests/guests/driver.h"

#define PIECE (2 * MIB)

static struct {
        uint64_t size;
        CUdeviceptr device, managed;
        CUmemGenericAllocationHandle made, imported;
} held = { .size = 16 * MIB };

static void import(void)
{
        CUmemAllocationProp prop;
        int fd;

        memset(&prop, 0, sizeof(prop));
        prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        must(DRIVER(cuMemCreate)(&held.made, PIECE, &prop, 0));
        must(DRIVER(cuMemExportToShareableHandle)(&fd, held.made,
                                                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
        must(DRIVER(cuMemImportFromShareableHandle)(&held.imported, (void *)(intptr_t)fd,
                                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
        (void)close(fd);
}

static void free_all(void)
{
        if (held.device)
                must(DRIVER(cuMemFree_v2)(held.device));
        if (held.managed)
                must(DRIVER(cuMemFree_v2)(held.managed));
        if (held.imported)
                must(DRIVER(cuMemRelease)(held.imported));
        if (held.made)
                must(DRIVER(cuMemRelease)(held.made));
        held.device = held.managed = 0;
        held.imported = held.made = 0;
}

static int do_word(const char *word)
{
        if (strcmp(word, "device") == 0)
                must(DRIVER(cuMemAlloc_v2)(&held.device, held.size));
        else if (strcmp(word, "managed") == 0)
                must(DRIVER(cuMemAllocManaged)(&held.managed, held.size, CU_MEM_ATTACH_GLOBAL));
        else if (strcmp(word, "imported") == 0)
                import();
        else if (strcmp(word, "nothing") == 0)
                free_all();
        else
                return -1;
        return 0;
}

int main(int argc, char **argv)
{
        CUcontext context;
        CUdevice device;
        char word[32];

        if (argc > 2 || (argc == 2 && size_parse(&held.size, argv[1]) < 0)) {
                fprintf(stderr, "usage: guest-hold [SIZE]\n");
                return 2;
        }
        must(DRIVER(cuInit)(0));
        must(DRIVER(cuDeviceGet)(&device, 0));
        must(DRIVER(cuDevicePrimaryCtxRetain)(&context, device));
        must(DRIVER(cuCtxSetCurrent)(context));
        puts("ready");
        (void)fflush(stdout);
        while (scanf("%31s", word) == 1) {
                if (do_word(word) < 0) {
                        fprintf(stderr, "there is no '%s'\n", word);
                        return 2;
                }
                puts(word);
                (void)fflush(stdout);
        }
        return 0;
}
