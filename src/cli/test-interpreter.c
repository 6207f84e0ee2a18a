/* SPDX-License-Identifier: Apache-2.0 */
/* Which programs the gate is loaded into. */
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/test.h"
#include "cli/interpreter.h"

/* Of a program: its header, what is to be loaded, and the name of its loader. */
struct program {
        Elf64_Ehdr header;
        Elf64_Phdr segments[2];
        char loader[32];
};

static char path[32];

static void write_file(const void *bytes, size_t size, mode_t mode)
{
        int fd;

        strcpy(path, "/tmp/vgpu-program-XXXXXX");
        fd = mkstemp(path);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, bytes, size), size);
        assert_int_equal(fchmod(fd, mode), 0);
        close(fd);
}

/* @loader: NULL for none. */
static enum interpreter find(const char *loader, mode_t mode)
{
        struct program program = {
                .header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64 },
                            .e_phoff = offsetof(struct program, segments),
                            .e_phentsize = sizeof(Elf64_Phdr),
                            .e_phnum = 2 },
                .segments = { { .p_type = PT_LOAD },
                              { .p_type = loader ? PT_INTERP : PT_NOTE,
                                .p_offset = offsetof(struct program, loader),
                                .p_filesz = sizeof(program.loader) } },
        };
        enum interpreter found;

        if (loader)
                strcpy(program.loader, loader);
        write_file(&program, sizeof(program), mode);
        if (geteuid() == 0 && (mode & S_ISUID))
                assert_int_equal(chown(path, 12345, 12345) + chmod(path, mode), 0);
        found = interpreter_find(path);
        unlink(path);
        return found;
}

static void test_the_file_names_its_loader(void **state)
{
        (void)state;
        assert_int_equal(find("/lib64/ld-linux-x86-64.so.2", 0755), INTERPRETER_OTHER);
        assert_int_equal(find("/lib/ld-musl-x86_64.so.1", 0755), INTERPRETER_MUSL);
        assert_int_equal(find(NULL, 0755), INTERPRETER_NONE);
}

static void test_what_is_no_program_is_not_judged(void **state)
{
        static const char script[] = "#!/bin/sh\n", cut[] = ELFMAG "\2";
        (void)state;

        write_file(script, sizeof(script) - 1, 0755);
        assert_int_equal(interpreter_find(path), INTERPRETER_OTHER);
        unlink(path);
        write_file(cut, sizeof(cut) - 1, 0755);
        assert_int_equal(interpreter_find(path), INTERPRETER_OTHER);
        unlink(path);
        assert_int_equal(interpreter_find(path), INTERPRETER_OTHER);
        assert_int_equal(interpreter_find("/tmp"), INTERPRETER_OTHER);
}

static void test_the_rights_of_another_user_keep_the_gate_out(void **state)
{
        (void)state;
        if (geteuid() != 0)
                skip(); /* only root can make the file another user's */
        assert_int_equal(find("/lib64/ld-linux-x86-64.so.2", 04755), INTERPRETER_PRIVILEGED);
        assert_int_equal(find(NULL, 04755), INTERPRETER_NONE);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_file_names_its_loader),
                cmocka_unit_test(test_what_is_no_program_is_not_judged),
                cmocka_unit_test(test_the_rights_of_another_user_keep_the_gate_out),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
