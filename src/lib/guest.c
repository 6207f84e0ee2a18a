/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest gets the caller's environment with the manager's variables.
 *
 * A search list (LD_PRELOAD, ...) comes before the caller's list, so that a program keeps the entries
 * that it needs. All other variables replace the caller's.
 */
#include <stdio.h>
#include <string.h>

#include <openvgpu/guest.h>

#include "base/cleanup.h"
#include "lib/client.h"

static const char *const lists[] = { "LD_PRELOAD", "LD_LIBRARY_PATH" };

DEFINE_CLEANUP(char **, vgpu_guest_environment_free);

static bool is_list(const char *name)
{
        for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
                if (strcmp(lists[i], name) == 0)
                        return true;
        return false;
}

static size_t count(char *const *environment)
{
        size_t n = 0;

        while (environment[n])
                n++;
        return n;
}

/* The place of @name, or of the NULL at the end. */
static size_t find(char *const *environment, const char *name)
{
        size_t length = strlen(name), i = 0;

        while (environment[i] &&
               (strncmp(environment[i], name, length) != 0 || environment[i][length] != '='))
                i++;
        return i;
}

/* A copy of @environment with room for @n_more. */
static char **copy(char *const *environment, size_t n_more)
{
        CLEANUP(vgpu_guest_environment_freep) char **result = NULL;
        size_t n = count(environment);

        result = calloc(n + n_more + 1, sizeof(*result));
        if (!result)
                return NULL;
        for (size_t i = 0; i < n; i++) {
                result[i] = strdup(environment[i]);
                if (!result[i])
                        return NULL;
        }
        return TAKE(result);
}

/* Is @value the first of the list @old already? Then a guest starts another one of the same vGPU. */
static bool begins_with(const char *old, const char *value)
{
        size_t length = strlen(value);

        return strncmp(old, value, length) == 0 && (old[length] == ':' || old[length] == '\0');
}

static bool set(char **environment, const char *name, const char *value)
{
        char **place = &environment[find(environment, name)];
        const char *old = *place ? *place + strlen(name) + 1 : "";
        char *text;
        int n;

        if (!is_list(name) || *old == '\0')
                n = asprintf(&text, "%s=%s", name, value);
        else if (begins_with(old, value))
                return true;
        else
                n = asprintf(&text, "%s=%s:%s", name, value, old);
        if (n < 0)
                return false;

        free(*place);
        *place = text;
        return true;
}

static int merge(struct vgpu_client *client, char *const *environment, json_t *variables,
                 char ***ret_environment)
{
        CLEANUP(vgpu_guest_environment_freep) char **result = NULL;
        const char *name;
        json_t *value;

        if (!json_is_object(variables))
                return client_set_bad_answer(client, "PrepareRun", "environment");

        result = copy(environment, json_object_size(variables));
        if (!result)
                return error_set_no_memory(&client->error);

        json_object_foreach(variables, name, value)
        {
                if (!json_is_string(value) || *name == '\0' || strchr(name, '='))
                        return client_set_bad_answer(client, "PrepareRun", "environment");
                if (!set(result, name, json_string_value(value)))
                        return error_set_no_memory(&client->error);
        }
        *ret_environment = TAKE(result);
        return 0;
}

static int prepare(struct vgpu_client *client, const char *name, bool becomes, bool usable,
                   char *const *environment, char ***ret_environment)
{
        static const struct call call = { .method = "PrepareRun", .kind = CALL_READS };
        CLEANUP(json_decrefp) json_t *parameters = NULL, *answer = NULL;
        int r = client_begin(client, &parameters);

        if (r == 0)
                r = client_add_text(client, parameters, "name", name);
        if (r == 0 && becomes)
                r = client_add(client, parameters, "becomes", json_true());
        if (r == 0 && usable)
                r = client_add(client, parameters, "usable", json_true());
        if (r == 0)
                r = client_call(client, &call, parameters, &answer);
        if (r < 0)
                return r;
        return merge(client, environment, json_object_get(answer, "environment"), ret_environment);
}

int vgpu_guest_prepare(struct vgpu_client *client, const char *name, char *const *environment,
                       char ***ret_environment)
{
        return prepare(client, name, false, false, environment, ret_environment);
}

int vgpu_guest_become(struct vgpu_client *client, const char *name, unsigned int flags,
                      char *const *environment, char ***ret_environment)
{
        return prepare(client, name, true, flags & VGPU_GUEST_NO_WAIT, environment,
                       ret_environment);
}

char **vgpu_guest_environment_free(char **environment)
{
        for (size_t i = 0; environment && environment[i]; i++)
                free(environment[i]);
        free(environment);
        return NULL;
}
