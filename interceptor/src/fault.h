/* Points inside critical sections at which a test kills or stops the process: VNPU_FAULT=<point>:<kill|stop>:<pass>.
 * Only in builds for tests; elsewhere a point is nothing. */
#ifndef VNPU_FAULT_H
#define VNPU_FAULT_H

#ifdef VNPU_TESTING
void vnpu_fault(const char *point);
#define VNPU_FAULT(point) vnpu_fault(point)
#else
#define VNPU_FAULT(point) ((void)0)
#endif

#endif
