/* Makes chosen calls below chosen folders fail, or cut writes short, and sets the wall clock off, as the shared table of
   tests/faults.py says.

   As a library it is loaded by LD_PRELOAD; built with -DLAUNCHER it is a program that runs PYTHON with that library,
   so that shims, which are started with an empty environment, have it too. What a process with it starts does not.
   The kernel's own calls, those of a static program and those within the C library itself are not met. */

#define _GNU_SOURCE
#include <stdlib.h>

#ifdef LAUNCHER
#include <unistd.h>

int main(int argc, char **argv) {
    (void)argc;
    setenv("LD_PRELOAD", LIBRARY, 1);
    setenv("FAULTS_TABLE", TABLE, 1);
    execv(PYTHON, argv);
    return 127;
}

#else
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* The same as in faults.py. */
enum { OPEN = 1, CHANGE = 2, CREATE = 4, READ = 8, WRITE = 16, SYNC = 32, RENAME = 64, LINK = 128, UNLINK = 256,
       MKDIR = 512, TRUNCATE = 1024, MODE = 2048, STAT = 4096, SCAN = 8192 };
enum { RULES = 16, CUT_SHORT = 0 };

struct rule {
    char folder[1024];
    uint32_t calls;
    int32_t error;  /* CUT_SHORT halves a write */
    int32_t left;   /* how many more calls it meets; negative: all */
    uint32_t hits;
    int32_t passed; /* how many calls it lets pass before */
};

static struct rule *table;
/* Behind the rules: how many seconds the wall clock is ahead. */
static int64_t *ahead_s;

__attribute__((constructor)) static void load(void) {
    const char *path = getenv("FAULTS_TABLE");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd >= 0) {
        void *found = mmap(NULL, RULES * sizeof(struct rule) + sizeof *ahead_s, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        table = found == MAP_FAILED ? NULL : found;
        ahead_s = table ? (int64_t *)(table + RULES) : NULL;
        close(fd);
    }
    unsetenv("LD_PRELOAD");
    unsetenv("FAULTS_TABLE");
}

static int is_below(const char *path, const char *folder) {
    size_t length = strlen(folder);
    return length && !strncmp(path, folder, length) && (path[length] == '/' || !path[length]);
}

/* Take one of a number where there is any; return what there was. */
static int32_t take(int32_t *number) {
    int32_t left = __atomic_load_n(number, __ATOMIC_SEQ_CST);
    while (left > 0 && !__atomic_compare_exchange_n(number, &left, left - 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {}
    return left;
}

/* Return the rule that meets a call on a path; it has one call less left. */
static struct rule *met(uint32_t call, const char *path) {
    for (int i = 0; table && i < RULES; i++) {
        struct rule *rule = table + i;
        if (!(rule->calls & call) || !is_below(path, rule->folder)) continue;
        if (take(&rule->passed) > 0 || !take(&rule->left)) continue;
        __atomic_add_fetch(&rule->hits, 1, __ATOMIC_SEQ_CST);
        return rule;
    }
    return NULL;
}

static int fails(uint32_t call, const char *path) {
    struct rule *rule = met(call, path);
    if (!rule || rule->error == CUT_SHORT) return 0;
    errno = rule->error;
    return 1;
}

/* Make `full` the absolute path of a file; what a descriptor says of itself is one. */
static void name(int folder, const char *path, char *full) {
    char link[64], above[PATH_MAX];
    if (*path == '/') {
        snprintf(full, PATH_MAX, "%s", path);
        return;
    }
    if (folder == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
    else snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t length = readlink(link, above, sizeof above - 1);
    above[length < 0 ? 0 : length] = 0;
    if (*path) snprintf(full, PATH_MAX, "%s/%.2000s", above, path);
    else snprintf(full, PATH_MAX, "%s", above);
}

static int fails_at(uint32_t call, int folder, const char *path) {
    char full[PATH_MAX];
    if (!table || !path) return 0;
    int kept = errno;
    name(folder, path, full);
    errno = kept;
    return fails(call, full);
}

/* A disk that is broken fails no write to a FIFO. */
static struct rule *met_file(uint32_t call, int fd) {
    struct stat found;
    char full[PATH_MAX];
    if (!table) return NULL;
    int kept = errno, is_file = !fstat(fd, &found) && S_ISREG(found.st_mode);
    name(fd, "", full);
    errno = kept;
    return is_file || call == SYNC ? met(call, full) : NULL;
}

static int fails_file(uint32_t call, int fd) {
    struct rule *rule = met_file(call, fd);
    if (!rule || rule->error == CUT_SHORT) return 0;
    errno = rule->error;
    return 1;
}

static uint32_t call_of(int folder, const char *path, int flags) {
    struct stat found;
    int kept = errno, is_missing = fstatat(folder, path, &found, AT_SYMLINK_NOFOLLOW) != 0;
    errno = kept;
    if (!is_missing && !S_ISREG(found.st_mode)) return OPEN;
    uint32_t change = (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC ? CHANGE : 0;
    return OPEN | change | (is_missing && flags & O_CREAT ? CREATE : 0);
}

#define NEXT(name) ({ static __typeof__(&name) found; found ? found : (found = dlsym(RTLD_NEXT, #name)); })
#define MODE_OF(flags) va_list more; va_start(more, flags); \
    mode_t mode = (flags) & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; va_end(more)

#define OPENS(name) int name(const char *path, int flags, ...) { MODE_OF(flags); \
    return fails_at(call_of(AT_FDCWD, path, flags), AT_FDCWD, path) ? -1 : NEXT(name)(path, flags, mode); }
OPENS(open) OPENS(open64)
#define OPENS_AT(name) int name(int folder, const char *path, int flags, ...) { MODE_OF(flags); \
    return fails_at(call_of(folder, path, flags), folder, path) ? -1 : NEXT(name)(folder, path, flags, mode); }
OPENS_AT(openat) OPENS_AT(openat64)

#define PATH(call, name, declared, given) int name declared { \
    return fails_at(call, AT_FDCWD, path) ? -1 : NEXT(name) given; }
#define PATH_AT(call, name, declared, given) int name declared { \
    return fails_at(call, folder, path) ? -1 : NEXT(name) given; }
PATH(MKDIR, mkdir, (const char *path, mode_t mode), (path, mode))
PATH_AT(MKDIR, mkdirat, (int folder, const char *path, mode_t mode), (folder, path, mode))
PATH(CREATE, mkfifo, (const char *path, mode_t mode), (path, mode))
PATH_AT(CREATE, mkfifoat, (int folder, const char *path, mode_t mode), (folder, path, mode))
PATH(UNLINK, unlink, (const char *path), (path))
PATH_AT(UNLINK, unlinkat, (int folder, const char *path, int flags), (folder, path, flags))
PATH(UNLINK, rmdir, (const char *path), (path))
PATH(MODE, chmod, (const char *path, mode_t mode), (path, mode))
PATH_AT(MODE, fchmodat, (int folder, const char *path, mode_t mode, int flags), (folder, path, mode, flags))
PATH_AT(MODE, utimensat, (int folder, const char *path, const struct timespec at[2], int flags),
        (folder, path, at, flags))
PATH(TRUNCATE, truncate, (const char *path, off_t size), (path, size))
PATH(TRUNCATE, truncate64, (const char *path, off64_t size), (path, size))
PATH(STAT, access, (const char *path, int mode), (path, mode))
PATH_AT(STAT, faccessat, (int folder, const char *path, int mode, int flags), (folder, path, mode, flags))
PATH(STAT, stat, (const char *path, struct stat *found), (path, found))
PATH(STAT, lstat, (const char *path, struct stat *found), (path, found))
PATH(STAT, stat64, (const char *path, struct stat64 *found), (path, found))
PATH(STAT, lstat64, (const char *path, struct stat64 *found), (path, found))
PATH_AT(STAT, fstatat64, (int folder, const char *path, struct stat64 *found, int flags), (folder, path, found, flags))

/* Of two names, the new one decides: that is where the disk has to write. */
int rename(const char *from, const char *path) {
    return fails_at(RENAME, AT_FDCWD, path) ? -1 : NEXT(rename)(from, path);
}
int renameat(int from_folder, const char *from, int folder, const char *path) {
    return fails_at(RENAME, folder, path) ? -1 : NEXT(renameat)(from_folder, from, folder, path);
}
int renameat2(int from_folder, const char *from, int folder, const char *path, unsigned flags) {
    return fails_at(RENAME, folder, path) ? -1 : NEXT(renameat2)(from_folder, from, folder, path, flags);
}
int link(const char *from, const char *path) {
    return fails_at(LINK, AT_FDCWD, path) ? -1 : NEXT(link)(from, path);
}
int linkat(int from_folder, const char *from, int folder, const char *path, int flags) {
    return fails_at(LINK, folder, path) ? -1 : NEXT(linkat)(from_folder, from, folder, path, flags);
}
int symlink(const char *to, const char *path) {
    return fails_at(LINK, AT_FDCWD, path) ? -1 : NEXT(symlink)(to, path);
}
int symlinkat(const char *to, int folder, const char *path) {
    return fails_at(LINK, folder, path) ? -1 : NEXT(symlinkat)(to, folder, path);
}

#define WRITES(name, declared, given) ssize_t name declared { \
    struct rule *rule = met_file(WRITE, fd); \
    if (rule && rule->error != CUT_SHORT) { errno = rule->error; return -1; } \
    if (rule && size > 1) size /= 2; \
    return NEXT(name) given; }
WRITES(write, (int fd, const void *data, size_t size), (fd, data, size))
WRITES(pwrite, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at))
WRITES(pwrite64, (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at))

#define FILE_CALL(call, type, name, declared, given) type name declared { \
    return fails_file(call, fd) ? -1 : NEXT(name) given; }
FILE_CALL(WRITE, ssize_t, writev, (int fd, const struct iovec *data, int many), (fd, data, many))
FILE_CALL(READ, ssize_t, read, (int fd, void *data, size_t size), (fd, data, size))
FILE_CALL(READ, ssize_t, pread, (int fd, void *data, size_t size, off_t at), (fd, data, size, at))
FILE_CALL(READ, ssize_t, pread64, (int fd, void *data, size_t size, off64_t at), (fd, data, size, at))
FILE_CALL(SYNC, int, fsync, (int fd), (fd))
FILE_CALL(SYNC, int, fdatasync, (int fd), (fd))
FILE_CALL(SYNC, int, syncfs, (int fd), (fd))
FILE_CALL(TRUNCATE, int, ftruncate, (int fd, off_t size), (fd, size))
FILE_CALL(TRUNCATE, int, ftruncate64, (int fd, off64_t size), (fd, size))
FILE_CALL(MODE, int, fchmod, (int fd, mode_t mode), (fd, mode))

DIR *opendir(const char *path) {
    return fails_at(SCAN, AT_FDCWD, path) ? NULL : NEXT(opendir)(path);
}
DIR *fdopendir(int fd) {
    return fails_at(SCAN, fd, "") ? NULL : NEXT(fdopendir)(fd);
}

static time_t ahead(void) {
    return ahead_s ? (time_t)__atomic_load_n(ahead_s, __ATOMIC_SEQ_CST) : 0;
}
int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = NEXT(clock_gettime)(clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += ahead();
    return failed;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    int failed = NEXT(gettimeofday)(now, zone);
    if (!failed) now->tv_sec += ahead();
    return failed;
}
time_t time(time_t *now) {
    time_t found = NEXT(time)(NULL) + ahead();
    if (now) *now = found;
    return found;
}
#endif
