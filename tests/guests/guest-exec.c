/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest that becomes another program by exec(), as programs do that restart themselves:
 *
 *     guest-exec SIZE [N]
 *
 * takes SIZE bytes, fills them, prints "ready N" (0 unless said otherwise), and does what each line of its standard input says:
 *
 *     look      its memory comes back as it was: prints "good"
 *     again     the same program with N + 1; it prints "begins N" before it uses the driver
 *     sleep     a program that does not use the driver, and prints "sleeps"
 *
 * It ends with its standard input.
 */
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "tests/guests/driver.h"

static uint64_t size;
static unsigned int word;
static CUdeviceptr memory;

static void take(void)
{
        CUcontext context;
        CUdevice device;

        must(DRIVER(cuInit)(0));
        must(DRIVER(cuDeviceGet)(&device, 0));
        must(DRIVER(cuDevicePrimaryCtxRetain)(&context, device));
        must(DRIVER(cuCtxSetCurrent)(context));
        must(DRIVER(cuMemAlloc_v2)(&memory, size));
        must(DRIVER(cuMemsetD32_v2)(memory, word, size / sizeof(word)));
}

static void look(void)
{
        unsigned int last = 0;

        must(DRIVER(cuMemcpyDtoH_v2)(&last, memory + size - sizeof(last), sizeof(last)));
        if (last != word) {
                fprintf(stderr, "its memory is wrong\n");
                exit(1);
        }
        puts("good");
        (void)fflush(stdout);
}

static void become_next(char *size_text)
{
        char next[16];

        snprintf(next, sizeof(next), "%u", word + 1);
        execl("/proc/self/exe", "guest-exec", size_text, next, NULL);
}

int main(int argc, char **argv)
{
        char line[64];

        if (argc < 2 || argc > 3 || size_parse(&size, argv[1]) < 0) {
                fprintf(stderr, "usage: guest-exec SIZE [N]\n");
                return 2;
        }
        (void)setvbuf(stdin, NULL, _IONBF, 0); /* what is behind a line is the next program's */
        word = argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 10) : 0;
        printf("begins %u\n", word);
        (void)fflush(stdout);
        take();
        printf("ready %u\n", word);
        (void)fflush(stdout);
        while (fgets(line, sizeof(line), stdin)) {
                if (strcmp(line, "look\n") == 0)
                        look();
                else if (strcmp(line, "again\n") == 0)
                        become_next(argv[1]);
                else if (strcmp(line, "sleep\n") == 0)
                        execl("/bin/sh", "sh", "-c", "echo sleeps; read word", NULL);
        }
        return 0;
}
