#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "limiter.h"
#include "vnpu/names.h"

enum { LOG_LIMIT = 64 * 1024 };

static int open_log(void) {
    char own[VNPU_PATH_LIMIT];
    struct stat status;
    const char *path = getenv(VNPU_ENV_LOG);

    if (path == NULL || *path == '\0') {
        snprintf(own, sizeof own, VNPU_LIMITER_LOG_PREFIX "%llu.log", (unsigned long long)vnpu_namespace("mnt"));
        path = own;
    }
    int log = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    /* Started over rather than grown: a log must not fill a disk, and the last lines are the ones that matter. */
    if (log >= 0 && fstat(log, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > LOG_LIMIT &&
        ftruncate(log, 0) != 0) {
        close(log);
        return -1;
    }
    return log;
}

/* A log that cannot be written is never a reason to stop. */
void log_line(const char *format, ...) {
    char text[512];
    struct timespec now;
    struct tm date;
    va_list arguments;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &date);
    size_t length = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ ", &date);
    va_start(arguments, format);
    int more = vsnprintf(text + length, sizeof text - length - 1, format, arguments);
    va_end(arguments);
    length += more < 0 ? 0 : (size_t)more < sizeof text - length - 1 ? (size_t)more : sizeof text - length - 2;
    text[length++] = '\n';
    int log = open_log();
    if (log >= 0) {
        ssize_t ignored = write(log, text, length);
        (void)ignored;
        close(log);
    }
}
