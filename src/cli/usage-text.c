/* SPDX-License-Identifier: Apache-2.0 */
/* Times and users as people write and read them. */

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/duration.h"
#include "cli/usage.h"

char *usage_format_duration(char *text, double seconds)
{
        unsigned long long whole = (unsigned long long)(seconds + 0.5);
        unsigned int h = (unsigned int)(whole / 3600 % 24), m = (unsigned int)(whole / 60 % 60),
                     s = (unsigned int)(whole % 60);

        if (seconds < 59.95)
                snprintf(text, USAGE_DURATION_MAX, "%.1f s", seconds);
        else if (whole < 3600)
                snprintf(text, USAGE_DURATION_MAX, "%u:%02u", m, s);
        else if (whole < 86400)
                snprintf(text, USAGE_DURATION_MAX, "%u:%02u:%02u", h, m, s);
        else if (whole >= 8640000)
                snprintf(text, USAGE_DURATION_MAX, "%llud %02uh", whole / 86400, h);
        else
                snprintf(text, USAGE_DURATION_MAX, "%llud %02u:%02u:%02u", whole / 86400, h, m, s);
        return text;
}

char *usage_format_time(char *text, double seconds)
{
        time_t time = (time_t)seconds;
        struct tm local;

        if (seconds <= 0 || !localtime_r(&time, &local) ||
            strftime(text, USAGE_TIME_MAX, "%Y-%m-%d %H:%M", &local) == 0)
                strcpy(text, "-");
        return text;
}

char *usage_format_user(char *text, uint32_t user)
{
        const struct passwd *found = getpwuid(user);

        if (found)
                snprintf(text, USAGE_USER_MAX, "%s", found->pw_name);
        else
                snprintf(text, USAGE_USER_MAX, "%u", user);
        return text;
}

/* A number without a unit is no time here: "7" may be meant for the 7th, or for 7 days. */
static int parse_ago(double *ret_seconds, const char *text, double now)
{
        double ago;

        if (strspn(text, "0123456789.") == strlen(text) || duration_parse(&ago, text) < 0 ||
            ago > now)
                return -EINVAL;
        *ret_seconds = now - ago;
        return 0;
}

/* mktime() takes the 31st of February for the 3rd of March: what it makes must be what was said. */
static int from_local(double *ret_seconds, struct tm *said)
{
        struct tm local = *said;
        time_t time;

        local.tm_isdst = -1;
        time = mktime(&local);
        if (time < 0 || local.tm_mday != said->tm_mday || local.tm_mon != said->tm_mon)
                return -EINVAL;
        *ret_seconds = (double)time;
        return 0;
}

static int parse_today(double *ret_seconds, double now)
{
        time_t time = (time_t)now;
        struct tm local;

        if (!localtime_r(&time, &local))
                return -EINVAL;
        local.tm_hour = local.tm_min = local.tm_sec = 0;
        return from_local(ret_seconds, &local);
}

int usage_parse_time(double *ret_seconds, const char *text, double now)
{
        static const char *const formats[] = { "%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M" };

        if (strcmp(text, "today") == 0)
                return parse_today(ret_seconds, now);
        for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
                struct tm local = { 0 };
                const char *end = strptime(text, formats[i], &local);

                if (end && *end == '\0')
                        return from_local(ret_seconds, &local);
        }
        return parse_ago(ret_seconds, text, now);
}
