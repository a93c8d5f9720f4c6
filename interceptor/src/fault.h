/* Points inside critical sections at which a test kills or stops the process, and times that a test may change by an
 * environment variable. Only in builds for tests; elsewhere a point is nothing, and a time is what it is.
 *
 *     VNPU_FAULT=<point>:<kill|stop>:<pass>    this process, when it passes the point for that time
 *     VNPU_FAULTS=<directory>                  the first process that passes <point> while the directory has a file of
 *                                              that name: it takes the file away, and dies or, where the file says
 *                                              "pause", stands still for a while */
#ifndef VNPU_FAULT_H
#define VNPU_FAULT_H

#include <stdint.h>

#ifdef VNPU_TESTING
void vnpu_fault(const char *point);
uint64_t vnpu_milliseconds(const char *name, uint64_t standard);
#define VNPU_FAULT(point)                 vnpu_fault(point)
#define VNPU_MILLISECONDS(name, standard) vnpu_milliseconds(name, standard)
#else
#define VNPU_FAULT(point)                 ((void)0)
#define VNPU_MILLISECONDS(name, standard) ((uint64_t)(standard))
#endif

#endif
