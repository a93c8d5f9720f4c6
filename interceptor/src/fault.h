/* Points inside critical sections at which a test kills or stops the process. Only in builds for tests; elsewhere a
 * point is nothing.
 *
 *     VNPU_FAULT=<point>:<kill|stop>:<pass>    this process, when it passes the point for that time
 *     VNPU_FAULTS=<directory>                  the first process that passes <point> while the directory has a file of
 *                                              that name: it takes the file away, and dies or, where the file says
 *                                              "pause", stands still for a while */
#ifndef VNPU_FAULT_H
#define VNPU_FAULT_H

#ifdef VNPU_TESTING
void vnpu_fault(const char *point);
#define VNPU_FAULT(point) vnpu_fault(point)
#else
#define VNPU_FAULT(point) ((void)0)
#endif

#endif
