/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main program of a fuzz target where there is no fuzzer: it runs the target over the files and
 * folders that it is given, so that what a fuzzer has once found stays found. A crash is the failure;
 * the last line says at which file.
 *
 * With --mutate N before them it also runs N changed copies of each, the same ones each time.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz/target.h"

#define CHANGES_MAX 4
#define CHUNK_MAX   64

static size_t n_files;
static unsigned long n_mutants;
static uint64_t dice;

/* xorshift64: the same numbers on each machine. */
static size_t roll(size_t sides)
{
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        return sides > 0 ? dice % sides : 0;
}

/* A part of it is left out, or is there twice, or a byte is another one. Returns the new size; @data has room. */
static size_t change(uint8_t *data, size_t size)
{
        static const uint8_t odd[] = {
                0, 1, '0', '9', ' ', '\r', '\n', ':', 0x1c, 0x1e, 0x7f, 0xff
        };
        size_t at = roll(size), n = roll(size - at < CHUNK_MAX ? size - at : CHUNK_MAX) + 1;

        if (size == 0 || n > size - at)
                return size;
        switch (roll(4)) {
        case 0:
                data[at] ^= (uint8_t)(1u << roll(8));
                return size;
        case 1:
                data[at] = odd[roll(sizeof(odd))];
                return size;
        case 2:
                memmove(data + at, data + at + n, size - at - n);
                return size - n;
        default:
                memmove(data + at + n, data + at, size - at);
                return size + n;
        }
}

/* Each in memory of exactly its size. */
static void run_mutants(const uint8_t *data, size_t size)
{
        uint8_t *copy = malloc(size + CHANGES_MAX * CHUNK_MAX + 1), *exact;
        size_t copy_size;

        dice = 0x9e3779b97f4a7c15u + size;
        for (unsigned long i = 0; copy && i < n_mutants; i++) {
                memcpy(copy, data, size);
                copy_size = size;
                for (size_t changes = roll(CHANGES_MAX) + 1; changes > 0; changes--)
                        copy_size = change(copy, copy_size);
                exact = malloc(copy_size + !copy_size);
                if (!exact)
                        break;
                memcpy(exact, copy, copy_size);
                LLVMFuzzerTestOneInput(exact, copy_size);
                free(exact);
        }
        free(copy);
}

static void run_file(const char *path)
{
        FILE *file = fopen(path, "rb");
        uint8_t *data = NULL;
        struct stat status;

        if (!file || fstat(fileno(file), &status) < 0) {
                perror(path);
                exit(2);
        }
        /* Of exactly the size, so that a sanitizer sees a read behind the end. */
        data = malloc((size_t)status.st_size + !status.st_size);
        if (!data || fread(data, 1, (size_t)status.st_size, file) != (size_t)status.st_size) {
                perror(path);
                exit(2);
        }
        fclose(file);
        printf("%s\n", path);
        fflush(stdout);
        LLVMFuzzerTestOneInput(data, (size_t)status.st_size);
        run_mutants(data, (size_t)status.st_size);
        free(data);
        n_files++;
}

static void run_folder(const char *path)
{
        struct dirent **entries;
        int n = scandir(path, &entries, NULL, alphasort);

        for (int i = 0; i < n; i++) {
                char name[4096];

                snprintf(name, sizeof(name), "%s/%s", path, entries[i]->d_name);
                if (entries[i]->d_name[0] != '.')
                        run_file(name);
                free(entries[i]);
        }
        if (n >= 0)
                free(entries);
}

int main(int argc, char **argv)
{
        int i = 1;

        if (argc > 2 && strcmp(argv[1], "--mutate") == 0) {
                n_mutants = strtoul(argv[2], NULL, 10);
                i = 3;
        }
        for (; i < argc; i++) {
                struct stat status;

                if (stat(argv[i], &status) == 0 && S_ISDIR(status.st_mode))
                        run_folder(argv[i]);
                else
                        run_file(argv[i]);
        }
        printf("%zu files\n", n_files);
        return n_files > 0 ? 0 : 2;
}
