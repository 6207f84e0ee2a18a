/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/interpreter.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/paths.h"

/* More than any linker makes. */
#define HEADERS_MAX 64

static bool read_all(int fd, void *bytes, size_t size, uint64_t offset)
{
        return pread(fd, bytes, size, (off_t)offset) == (ssize_t)size;
}

/* "" if it names none. */
static void read_interpreter(int fd, char name[PATHS_MAX])
{
        Elf64_Phdr segment;
        Elf64_Ehdr header;

        name[0] = '\0';
        if (!read_all(fd, &header, sizeof(header), 0) ||
            memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
            header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(segment))
                return;
        for (uint64_t i = 0; i < header.e_phnum && i < HEADERS_MAX; i++) {
                if (!read_all(fd, &segment, sizeof(segment), header.e_phoff + i * sizeof(segment)))
                        return;
                if (segment.p_type != PT_INTERP || segment.p_filesz >= PATHS_MAX)
                        continue;
                if (read_all(fd, name, segment.p_filesz, segment.p_offset))
                        name[segment.p_filesz] = '\0';
                return;
        }
}

bool interpreter_is_musl(const char *program)
{
        CLEANUP(fd_closep) int fd = -1;
        char path[PATHS_MAX], name[PATHS_MAX];

        if (paths_search(path, program) < 0)
                return false;
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return false;
        read_interpreter(fd, name);
        return strstr(name, "/ld-musl-");
}
