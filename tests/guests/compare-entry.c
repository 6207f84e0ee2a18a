/* SPDX-License-Identifier: Apache-2.0 */
/* guest-compare: how functions are found by name. */
#include <string.h>

#include "tests/guests/compare.h"

static const char *const names[] = {
#define GATE_ENTRY(name, kind) #name,
#include "gate-entries.inc"
#undef GATE_ENTRY
};

static const int versions[] = { 2000, 3020, 7000, 10000, 11030, 12000, 12080, 13000, 13040 };

/* One character a version and flag: "+" found, otherwise the code's last digit, and the status. */
static void ask(const char *name)
{
        char answers[4 * 3 * compare_count(versions) + 1];
        size_t n = 0;

        for (size_t i = 0; i < compare_count(versions); i++)
                for (uint64_t flags = 0; flags < 3; flags++) {
                        void *function = NULL;
                        int status = 9;
                        CUresult result = DRIVER(cuGetProcAddress_v2)(name, &function, versions[i],
                                                                      flags, &status);

                        n += (size_t)snprintf(answers + n, sizeof(answers) - n, "%s%d%d",
                                              function ? "+" : "-", result % 10, status);
                }
        SAY("%s: %s", name, answers);
}

/* Every name of the table: those with a version at their end are found under no name at all. */
static void all(void)
{
        must(DRIVER(cuInit)(0));
        for (size_t i = 0; i < compare_count(names); i++)
                ask(names[i]);
}

static void wrong_arguments(void)
{
        void *function = (void *)&function;
        int status = 9;

        CALL(cuGetProcAddress_v2, "before cuInit", "cuMemAlloc", &function, 12000, 0, &status);
        must(DRIVER(cuInit)(0));
        CALL(cuGetProcAddress_v2, "no name", NULL, &function, 12000, 0, &status);
        CALL(cuGetProcAddress_v2, "an empty name", "", &function, 12000, 0, &status);
        CALL(cuGetProcAddress_v2, "to nowhere", "cuMemAlloc", NULL, 12000, 0, &status);
        CALL(cuGetProcAddress_v2, "no status", "cuMemAlloc", &function, 12000, 0, NULL);
        CALL(cuGetProcAddress_v2, "flags 77", "cuMemAlloc", &function, 12000, 77, &status);
        CALL(cuGetProcAddress_v2, "version 0", "cuMemAlloc", &function, 0, 0, &status);
        function = NULL;
        CALL(cuGetProcAddress_v2, "of no driver", "cuNothing", &function, 12000, 0, &status);
        SAY("of no driver: %d, status %d", function != NULL, status);
        CALL(cuGetProcAddress, "first name", "cuMemAlloc", &function, 11030, 0);
        CALL(cuGetProcAddress, "first name, of no driver", "cuNothing", &function, 11030, 0);
        CALL(cuGetProcAddress, "first name, to nowhere", "cuMemAlloc", NULL, 11030, 0);
}

static const struct {
        const char *name, *exported;
        int version;
        uint64_t flags;
} same[] = {
        { "cuMemAlloc", "cuMemAlloc_v2", 12000, 0 },
        { "cuMemAlloc", "cuMemAlloc", 2000, 0 },
        { "cuMemAllocAsync", "cuMemAllocAsync", 12000, 0 },
        { "cuMemAllocAsync", "cuMemAllocAsync_ptsz", 12000, 2 },
        { "cuStreamBeginCapture", "cuStreamBeginCapture_v2", 12000, 0 },
        { "cuStreamBeginCapture", "cuStreamBeginCapture_v2_ptsz", 12000, 2 },
        { "cuCtxDestroy", "cuCtxDestroy_v2", 12000, 0 },
        { "cuGetProcAddress", "cuGetProcAddress", 11030, 0 },
        { "cuGetProcAddress", "cuGetProcAddress_v2", 12000, 0 },
        { "cuInit", "cuInit", 12000, 0 },
        { "cuLaunchKernel", "cuLaunchKernel_ptsz", 12000, 2 },
};

static void the_same(void)
{
        must(DRIVER(cuInit)(0));
        for (size_t i = 0; i < compare_count(same); i++) {
                void *first = NULL, *second = NULL;

                must(DRIVER(cuGetProcAddress_v2)(same[i].name, &first, same[i].version,
                                                 same[i].flags, NULL));
                must(DRIVER(cuGetProcAddress_v2)(same[i].name, &second, same[i].version,
                                                 same[i].flags, NULL));
                SAY("%s at %d, %d: the same again %d, as exported %d", same[i].name,
                    same[i].version, (int)same[i].flags, first == second,
                    first == driver_symbol(same[i].exported));
        }
}

const struct compare_case compare_entry[] = {
        { "all", all },
        { "wrong-arguments", wrong_arguments },
        { "the-same", the_same },
        { NULL, NULL },
};
