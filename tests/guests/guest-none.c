/* SPDX-License-Identifier: Apache-2.0 */
/* A guest that never calls CUDA: it prints its threads and its sockets, of which the gate adds none. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int count(const char *directory, const char *prefix)
{
        DIR *entries = opendir(directory);
        int n = 0;

        for (struct dirent *entry = entries ? readdir(entries) : NULL; entry;
             entry = readdir(entries)) {
                char path[512], target[256];
                ssize_t length;

                if (entry->d_name[0] == '.')
                        continue;
                if (!prefix) {
                        n++;
                        continue;
                }
                snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
                length = readlink(path, target, sizeof(target) - 1);
                n += length > 0 && strncmp(target, prefix, strlen(prefix)) == 0;
        }
        if (entries)
                closedir(entries);
        return n;
}

int main(void)
{
        printf("threads %d sockets %d\n", count("/proc/self/task", NULL),
               count("/proc/self/fd", "socket:"));
        return 0;
}
