/* SPDX-License-Identifier: Apache-2.0 */
/* Random life of a pool, against a model of it. */
#include "pool/test-pool.h"

/*
 * Random life of a pool. The model knows whose data is in each slab; the property is that no owner
 * is ever given a slab that has data of another, whatever fails or is lost in between.
 */

#define OWNERS       3
#define RESERVATIONS 12
#define IDS_MAX      65536

struct model {
        struct fixture *fixture;
        struct pool_reservation *reservation[RESERVATIONS];
        uint32_t device[RESERVATIONS];
        bool is_prepared[RESERVATIONS];
        bool is_spare[RESERVATIONS];
        struct spare {
                struct model *model;
                size_t index;
        } spare[RESERVATIONS];
        uint8_t data[IDS_MAX]; /* a bit for each owner with data in the slab */
        uint32_t seed;
};

static const char *const owner_names[OWNERS] = { "one", "two", "three" };

static uint32_t random_below(struct model *model, uint32_t n)
{
        model->seed = model->seed * 1664525u + 1013904223u;
        return (model->seed >> 8) % n;
}

static uint8_t owner_bit(const struct pool_reservation *reservation)
{
        for (unsigned int i = 0; i < OWNERS; i++)
                if (strcmp(pool_get_owner(reservation), owner_names[i]) == 0)
                        return (uint8_t)(1u << i);
        fail();
        return 0;
}

/* The mover writes, now and at any time until it is released. */
static void write_data(struct model *model, size_t i)
{
        size_t n;
        const struct pool_extent *extents = pool_get_extents(model->reservation[i], &n);
        uint8_t owner = owner_bit(model->reservation[i]);

        model->is_prepared[i] = true;
        for (size_t k = 0; k < n; k++) {
                assert_true((model->data[extents[k].slab] & ~owner) == 0);
                model->data[extents[k].slab] = owner;
        }
}

static void on_model_prepared(struct pool_reservation *reservation, int error, void *userdata)
{
        struct model *model = userdata;

        for (size_t i = 0; i < RESERVATIONS && error == 0; i++)
                if (model->reservation[i] == reservation)
                        write_data(model, i);
}

static void step_reserve(struct model *model, size_t i)
{
        const char *owner = owner_names[random_below(model, OWNERS)];
        uint64_t bytes = 1 + random_below(model, 3 * SLAB);
        uint64_t available = pool_available(model->fixture->pool, owner);
        int r;

        model->device[i] = random_below(model, 3);
        model->is_prepared[i] = false;
        r = pool_reserve(model->fixture->pool, &model->reservation[i], owner, model->device[i],
                         bytes);
        assert_int_equal(r, bytes > available ? -ENOSPC : 0);
}

static void step_prepare(struct model *model, size_t i)
{
        bool ready = false;
        int r;

        r = pool_prepare(model->fixture->pool, model->reservation[i], random_below(model, 3),
                         on_model_prepared, model, &ready);
        if (r == 0 && ready)
                write_data(model, i);
}

static void on_given_up(void *userdata)
{
        const struct spare *spare = userdata;

        assert_true(spare->model->is_spare[spare->index]);
        spare->model->is_spare[spare->index] = false;
        spare->model->reservation[spare->index] = NULL;
}

/* Only what has data is of use; a slab that waits to be zeroed has none of its owner's. */
static void step_spare(struct model *model, size_t i)
{
        struct pool *pool = model->fixture->pool;

        if (model->is_spare[i]) {
                assert_int_equal(pool_need(pool, model->reservation[i]), 0);
                model->is_spare[i] = false;
        } else if (model->is_prepared[i]) {
                model->spare[i] = (struct spare){ model, i };
                model->is_spare[i] = pool_spare(pool, model->reservation[i], random_below(model, 3),
                                                on_given_up, &model->spare[i]) == 0;
        }
}

static void step_release(struct model *model, size_t i)
{
        model->is_spare[i] = false;
        model->reservation[i] = pool_release(model->fixture->pool, model->reservation[i]);
}

static void step_end_work(struct model *model)
{
        struct fixture *fixture = model->fixture;
        size_t index = random_below(model, (uint32_t)fixture->n_works);
        bool fails = random_below(model, 8) == 0;

        if (fixture->works[index].action == POOL_ZERO && !fails) {
                for (size_t i = 0; i < RESERVATIONS; i++) { /* nobody's data is lost by it */
                        size_t n;
                        const struct pool_extent *extents;

                        if (!model->reservation[i] || !model->is_prepared[i])
                                continue;
                        extents = pool_get_extents(model->reservation[i], &n);
                        for (size_t k = 0; k < n; k++)
                                assert_int_not_equal(extents[k].slab, fixture->works[index].slab);
                }
                model->data[fixture->works[index].slab] = 0;
        }
        end_work(fixture, index, fails ? -EIO : 0);
}

static void step_lose_device(struct model *model)
{
        uint32_t device = random_below(model, 3);
        struct fixture *fixture = model->fixture;

        pool_device_lost(fixture->pool, device);
        for (size_t i = fixture->n_works; i-- > 0;)
                if (fixture->works[i].device == device) {
                        fixture->n_works--;
                        memmove(fixture->works + i, fixture->works + i + 1,
                                (fixture->n_works - i) * sizeof(fixture->works[0]));
                }
        if (random_below(model, 2))
                pool_want(fixture->pool, device, SLAB * random_below(model, 6));
}

static void assert_disjoint(const struct model *model)
{
        uint64_t used = 0;

        for (size_t i = 0; i < RESERVATIONS; i++) {
                size_t n;
                const struct pool_extent *a;

                if (!model->reservation[i])
                        continue;
                used += model->is_spare[i] ? 0 : sum_of(model->reservation[i]);
                a = pool_get_extents(model->reservation[i], &n);
                for (size_t j = 0; j < i; j++) {
                        size_t m;
                        const struct pool_extent *b;

                        if (!model->reservation[j])
                                continue;
                        b = pool_get_extents(model->reservation[j], &m);
                        for (size_t k = 0; k < n * m; k++) {
                                const struct pool_extent *x = &a[k / m], *y = &b[k % m];

                                if (x->slab != y->slab)
                                        continue;
                                assert_int_equal(owner_bit(model->reservation[i]),
                                                 owner_bit(model->reservation[j]));
                                assert_true(x->offset + x->length <= y->offset ||
                                            y->offset + y->length <= x->offset);
                        }
                }
        }
        assert_true(info_of(model->fixture).used == used);
}

static void take_random_step(struct model *model, uint64_t *limit)
{
        struct fixture *fixture = model->fixture;
        size_t i = random_below(model, RESERVATIONS);
        uint32_t what = random_below(model, 100);

        fixture->refuse = random_below(model, 20) == 0 ? -ENODEV : 0;
        if (what < 40 && fixture->n_works > 0)
                step_end_work(model);
        else if (what < 60 && !model->reservation[i])
                step_reserve(model, i);
        else if (what < 72 && model->reservation[i] && !model->is_spare[i])
                step_prepare(model, i);
        else if (what < 85 && model->reservation[i])
                step_spare(model, i);
        else if (what < 95 && model->reservation[i])
                step_release(model, i);
        else if (what == 95)
                step_lose_device(model);
        else if (what == 96)
                pool_set_limit(fixture->pool, *limit = SLAB * random_below(model, 20));
        else if (what == 97)
                pool_want(fixture->pool, random_below(model, 3), 4 * SLAB);
}

/* Everything is free again then, and the pool is within its limit. */
static void come_to_rest(struct model *model, uint64_t limit)
{
        struct fixture *fixture = model->fixture;

        fixture->refuse = 0;
        for (size_t i = 0; i < RESERVATIONS; i++)
                step_release(model, i);
        while (fixture->n_works > 0) {
                if (fixture->works[0].action == POOL_ZERO)
                        model->data[fixture->works[0].slab] = 0;
                end_work(fixture, 0, 0);
        }
        assert_true(info_of(fixture).used == 0);
        assert_true(info_of(fixture).size <= limit);
        assert_true(pool_available(fixture->pool, owner_names[0]) == limit);
}

static void test_whatever_happens_nobody_is_given_data_of_another(void **state)
{
        struct model model = { .fixture = *state };
        uint64_t limit = 8 * SLAB;

        for (model.seed = 1; model.seed < 1000; model.seed += 100) {
                uint32_t seed = model.seed;

                for (unsigned int step = 0; step < 10000; step++) {
                        take_random_step(&model, &limit);
                        if (step % 16 == 0)
                                assert_disjoint(&model);
                }
                come_to_rest(&model, limit);
                model.seed = seed;
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                TEST(test_whatever_happens_nobody_is_given_data_of_another),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
