/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main program of a fuzz target where there is no fuzzer: it runs the target over the files and
 * folders that it is given, so that what a fuzzer has once found stays found. A crash is the failure;
 * the last line says at which file.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "fuzz/target.h"

static size_t n_files;

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
        for (int i = 1; i < argc; i++) {
                struct stat status;

                if (stat(argv[i], &status) == 0 && S_ISDIR(status.st_mode))
                        run_folder(argv[i]);
                else
                        run_file(argv[i]);
        }
        printf("%zu files\n", n_files);
        return n_files > 0 ? 0 : 2;
}
