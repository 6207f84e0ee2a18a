/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_PRIVILEGE_H
#define BASE_PRIVILEGE_H

/*
 * The capabilities of root that each program keeps: privilege.c has the table.
 *
 * They do not depend on who starts vgpud, or how. packaging/vgpud.service takes away more.
 */

enum privilege_program {
        PRIVILEGE_MANAGER,
        PRIVILEGE_MOVER,
        PRIVILEGE_KEEPER,
        PRIVILEGE_SAMPLER,
        PRIVILEGE_PROGRAMS
};

/*
 * privilege_keep() - give up every capability that @program has no use for, for good: no program
 * that it executes gets one back
 *
 * To be called while there is one thread. As another user than root there is nothing to give up.
 * Errors: those of capset(2), of which only vgpud speaks: to the programs that it starts the same
 * happens.
 */
int privilege_keep(enum privilege_program program);

#endif
