/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_LOG_H
#define GATE_LOG_H

/*
 * The gate's log. The gate is silent inside other people's programs, with two exceptions:
 *
 *   log_to_user()  one line on stderr when the program cannot work as its user expects;
 *                  the same text is said once
 *   log_write()    a line in the file that OPENVGPU_GATE_LOG names, if it names one
 *
 * Both are one write(2) each, no stdio, and keep errno.
 */

__attribute__((format(printf, 1, 2))) void log_to_user(const char *format, ...);
__attribute__((format(printf, 1, 2))) void log_write(const char *format, ...);

#endif
