/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_INTERPRETER_H
#define CLI_INTERPRETER_H

/* Which loader starts a program, as far as its file says: the gate is for glibc's, which has to load it. */

enum interpreter {
        INTERPRETER_OTHER, /* glibc's; or it is a script, or cannot be read */
        INTERPRETER_MUSL,
        INTERPRETER_NONE, /* linked statically: nothing is loaded into it */
        INTERPRETER_PRIVILEGED, /* set-user-id and the like: the loader loads nothing that its user names */
};

/* interpreter_find() - of what execvp() of @program would start. */
enum interpreter interpreter_find(const char *program);

#endif
