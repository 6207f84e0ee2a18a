/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/interpreter.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/paths.h"

/* More than any linker makes. */
#define HEADERS_MAX 64

static bool read_all(int fd, void *bytes, size_t size, uint64_t offset)
{
        return pread(fd, bytes, size, (off_t)offset) == (ssize_t)size;
}

static enum interpreter read_name(int fd, const Elf64_Phdr *segment)
{
        char name[PATHS_MAX] = "";

        if (segment->p_filesz < sizeof(name))
                (void)read_all(fd, name, segment->p_filesz, segment->p_offset);
        name[sizeof(name) - 1] = '\0';
        return strstr(name, "/ld-musl-") ? INTERPRETER_MUSL : INTERPRETER_OTHER;
}

static enum interpreter read_interpreter(int fd)
{
        Elf64_Phdr segment;
        Elf64_Ehdr header;

        if (!read_all(fd, &header, sizeof(header), 0) ||
            memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
            header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(segment) ||
            header.e_phnum > HEADERS_MAX)
                return INTERPRETER_OTHER;
        for (uint64_t i = 0; i < header.e_phnum; i++) {
                if (!read_all(fd, &segment, sizeof(segment), header.e_phoff + i * sizeof(segment)))
                        return INTERPRETER_OTHER;
                if (segment.p_type == PT_INTERP)
                        return read_name(fd, &segment);
        }
        return INTERPRETER_NONE;
}

/* As the kernel tells the loader (AT_SECURE). */
static bool is_privileged(const char *path)
{
        struct stat status;
        char capabilities[64];

        if (stat(path, &status) < 0 || !S_ISREG(status.st_mode))
                return false;
        if (((status.st_mode & S_ISUID) && status.st_uid != geteuid()) ||
            ((status.st_mode & S_ISGID) && (status.st_mode & S_IXGRP) &&
             status.st_gid != getegid()))
                return true;
        return geteuid() != 0 &&
               getxattr(path, "security.capability", capabilities, sizeof(capabilities)) > 0;
}

enum interpreter interpreter_find(const char *program)
{
        CLEANUP(fd_closep) int fd = -1;
        enum interpreter found;
        char path[PATHS_MAX];

        if (paths_search(path, program) < 0)
                return INTERPRETER_OTHER;
        fd = open(path, O_RDONLY | O_CLOEXEC);
        found = fd < 0 ? INTERPRETER_OTHER : read_interpreter(fd);
        /* A file that no user may read, as some sudo, is privileged all the same. */
        return found == INTERPRETER_OTHER && is_privileged(path) ? INTERPRETER_PRIVILEGED : found;
}
