/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every vGPU function of NVML, every code that its documents list: brought about and compared.
 *
 * What the documents say is data, abi/nvml-vgpu.codes; how each code is brought about is
 * the rows of the chapters beside this file. Neither may have what the other lacks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "conformance/rows.h"

/* Of abi/nvml-vgpu.codes. */
enum source { DOCUMENTED, OURS };

static const struct code {
        const char *function;
        nvmlReturn_t code;
        enum source source;
} codes[] = {
#define NVML_CODE(function, code, source) { #function, CODE_##code, source },
#define NVML_NEVER(function, code)
#include "nvml-vgpu-codes.inc"
#undef NVML_CODE
#undef NVML_NEVER
};

static const struct never {
        const char *function; /* "*": any that has no row */
        nvmlReturn_t code;
} nevers[] = {
#define NVML_CODE(function, code, source)
#define NVML_NEVER(function, code) { function, CODE_##code },
#include "nvml-vgpu-codes.inc"
#undef NVML_CODE
#undef NVML_NEVER
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ROWS_MAX     1024

struct row {
        const char *function;
        nvmlReturn_t code;
};

struct run {
        const char *function;
        enum situation situation;
        struct scene *scene;
        struct scratch *scratch;
        size_t n_rows, n_wrong;
        struct row rows[ROWS_MAX];
};

static struct run *run;

void row_begin(struct run *r, const char *function, enum situation situation,
               const struct scene **ret_scene, struct scratch **ret_scratch)
{
        bool can_stay = r->scene && r->situation == situation && situation < ACCEPTS;

        if (!can_stay) {
                r->scene = scene_free(r->scene);
                r->scene = scene_new(situation);
        }
        r->function = function;
        r->situation = situation;
        memset(r->scratch, 0xa5, sizeof(*r->scratch));
        *ret_scene = r->scene;
        *ret_scratch = r->scratch;
}

static bool is_untouched(const struct run *r)
{
        return memcmp(&r->scratch->now, &r->scratch->before, sizeof(r->scratch->now)) == 0;
}

static void blame(struct run *r, const char *text, int line, const char *what)
{
        print_error("line %d: %s%s: %s\n", line, r->function, text, what);
        r->n_wrong++;
}

void row_end(struct run *r, nvmlReturn_t expected, nvmlReturn_t got, bool condition,
             const char *text, int line)
{
        char what[64];

        snprintf(what, sizeof(what), "want %d, got %d", (int)expected, (int)got);
        if (got != expected)
                blame(r, text, line, what);
        else if (!condition)
                blame(r, text, line, "the code is right, the values are not");
        else if (got != NVML_SUCCESS && got != NVML_ERROR_INSUFFICIENT_SIZE && !is_untouched(r))
                blame(r, text, line, "it failed, and wrote nevertheless");
        assert_true(r->n_rows < ROWS_MAX);
        r->rows[r->n_rows++] = (struct row){ .function = r->function, .code = expected };
}

static int set_up(void **state)
{
        (void)state;
        run = calloc(1, sizeof(*run));
        assert_non_null(run);
        run->scratch = calloc(1, sizeof(*run->scratch));
        assert_non_null(run->scratch);
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        run->scene = scene_free(run->scene);
        free(run->scratch);
        free(run);
        return 0;
}

static void play(void (*chapter)(struct run *run))
{
        size_t n_wrong = run->n_wrong;

        chapter(run);
        assert_int_equal(run->n_wrong - n_wrong, 0);
}

#define CHAPTER(name)                         \
        static void test_##name(void **state) \
        {                                     \
                (void)state;                  \
                play(play_##name);            \
        }                                     \
        _Static_assert(true, "a semicolon follows")

CHAPTER(types);
CHAPTER(instances);
CHAPTER(devices);
CHAPTER(migration);
CHAPTER(schedulers);
CHAPTER(utilization);
CHAPTER(gpu_instances);

/* A stub takes any arguments; before nvmlInit() nobody looks at them. */
static void test_nothing_is_answered_before_the_library_is_initialized(void **state)
{
        static const struct {
                const char *name;
                void (*function)(void);
        } functions[] = {
#define NVML_FUNCTION(name) { #name, (void (*)(void))name },
#include "nvml-vgpu-functions.inc"
#undef NVML_FUNCTION
        };

        (void)state;
        run->scene = scene_free(run->scene);
        assert_int_equal(COUNT(functions), 87);
        for (size_t i = 0; i < COUNT(functions); i++) {
                nvmlReturn_t (*call)(void *, void *, void *, void *, void *) =
                        (nvmlReturn_t(*)(void *, void *, void *, void *, void *))functions[i]
                                .function;

                assert_int_equal(call(NULL, NULL, NULL, NULL, NULL), NVML_ERROR_UNINITIALIZED);
                run->rows[run->n_rows++] =
                        (struct row){ functions[i].name, NVML_ERROR_UNINITIALIZED };
        }
}

static bool has_row(const struct code *code)
{
        for (size_t i = 0; i < run->n_rows; i++)
                if (run->rows[i].code == code->code &&
                    strcmp(run->rows[i].function, code->function) == 0)
                        return true;
        return false;
}

static bool is_never(const struct code *code, bool by_name)
{
        for (size_t i = 0; i < COUNT(nevers); i++)
                if (nevers[i].code == code->code &&
                    (strcmp(nevers[i].function, code->function) == 0 ||
                     (!by_name && strcmp(nevers[i].function, "*") == 0)))
                        return true;
        return false;
}

static void test_every_code_was_brought_about_or_says_why_not(void **state)
{
        size_t n_wrong = 0;

        (void)state;
        for (size_t i = 0; i < COUNT(codes); i++) {
                const struct code *code = &codes[i];

                if (has_row(code) ? !is_never(code, true) : is_never(code, false))
                        continue;
                print_error("%s, code %d: %s\n", code->function, (int)code->code,
                            has_row(code) ? "a row brings about what can never be" : "no row");
                n_wrong++;
        }
        assert_int_equal(n_wrong, 0);
}

static bool is_known(const struct row *row)
{
        for (size_t i = 0; i < COUNT(codes); i++)
                if (codes[i].code == row->code && strcmp(codes[i].function, row->function) == 0)
                        return true;
        return false;
}

static void test_no_other_code_is_answered(void **state)
{
        size_t n_wrong = 0;

        (void)state;
        for (size_t i = 0; i < run->n_rows; i++) {
                if (is_known(&run->rows[i]))
                        continue;
                print_error("%s, code %d: not in abi/nvml-vgpu.codes\n", run->rows[i].function,
                            run->rows[i].code);
                n_wrong++;
        }
        assert_int_equal(n_wrong, 0);
        print_message("%zu rows, %zu codes\n", run->n_rows, COUNT(codes));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_types),
                cmocka_unit_test(test_instances),
                cmocka_unit_test(test_devices),
                cmocka_unit_test(test_migration),
                cmocka_unit_test(test_schedulers),
                cmocka_unit_test(test_utilization),
                cmocka_unit_test(test_gpu_instances),
                cmocka_unit_test(test_nothing_is_answered_before_the_library_is_initialized),
                cmocka_unit_test(test_every_code_was_brought_about_or_says_why_not),
                cmocka_unit_test(test_no_other_code_is_answered),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
