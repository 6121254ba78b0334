/* STREAM's four operations, a sum and a fill, as plain loops for the compiler to do its best with: what scripts/
   against-peers-memory holds our own against. Each thread works on memory of its own, in huge pages where the kernel
   gives them, pinned to the CPU that is named for it.

       gcc -O3 -march=native -fopenmp -o stream experiments/stream.c
       stream OPERATION MIB CPU…     one thread for each CPU; MIB for all arrays of a thread together

   Prints gigabytes a second, read and written counted alike: the median of nine rounds, of which each begins and
   ends together. */
#define _GNU_SOURCE
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { ROUNDS = 9, HUGE = 2 << 20 };

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

__attribute__((noinline)) static double copy(double *restrict a, double *restrict b, double *restrict c, size_t n) {
    (void)c;
    for (size_t i = 0; i < n; i++) a[i] = b[i];
    return a[n / 2];
}
__attribute__((noinline)) static double scale(double *restrict a, double *restrict b, double *restrict c, size_t n) {
    (void)c;
    for (size_t i = 0; i < n; i++) a[i] = 3.0 * b[i];
    return a[n / 2];
}
__attribute__((noinline)) static double add(double *restrict a, double *restrict b, double *restrict c, size_t n) {
    for (size_t i = 0; i < n; i++) a[i] = b[i] + c[i];
    return a[n / 2];
}
__attribute__((noinline)) static double triad(double *restrict a, double *restrict b, double *restrict c, size_t n) {
    for (size_t i = 0; i < n; i++) a[i] = b[i] + 3.0 * c[i];
    return a[n / 2];
}
__attribute__((noinline)) static double fill(double *restrict a, double *restrict b, double *restrict c, size_t n) {
    (void)b, (void)c;
    for (size_t i = 0; i < n; i++) a[i] = 1.25;
    return a[n / 2];
}
/* Integers, since a compiler may not add floating-point numbers in another order. */
__attribute__((noinline)) static double sum(double *restrict a, double *restrict b, double *restrict c, size_t n) {
    (void)b, (void)c;
    const long *words = (const long *)a;
    long s = 0;
    for (size_t i = 0; i < n; i++) s += words[i];
    return (double)s;
}

static const struct {
    const char *name;
    double (*run)(double *restrict, double *restrict, double *restrict, size_t);
    int arrays;
} OPERATIONS[] = {{"copy", copy, 2}, {"scale", scale, 2}, {"add", add, 3}, {"triad", triad, 3}, {"fill", fill, 1}, {"sum", sum, 1}};

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int count, char **words) {
    int op = -1, threads = count - 3;
    for (int i = 0; count > 3 && i < 6; i++)
        if (!strcmp(words[1], OPERATIONS[i].name)) op = i;
    if (op < 0) return fprintf(stderr, "stream: say an operation, MiB, and CPUs\n"), 2;
    int arrays = OPERATIONS[op].arrays;
    size_t n = (strtoull(words[2], NULL, 10) << 20) / arrays / 4096 * 512;
    double took[ROUNDS], began = 0;
    volatile double sink = 0;
    omp_set_num_threads(threads);
#pragma omp parallel
    {
        cpu_set_t mask;
        CPU_ZERO(&mask);
        CPU_SET(atoi(words[3 + omp_get_thread_num()]), &mask);
        sched_setaffinity(0, sizeof mask, &mask);
        char *memory = mmap(NULL, arrays * n * 8 + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) perror("stream: mmap"), exit(1);
        memory += HUGE - (size_t)memory % HUGE;
        madvise(memory, arrays * n * 8, MADV_HUGEPAGE);
        double *a = (double *)memory, *b = arrays > 1 ? a + n : a, *c = arrays > 2 ? b + n : b;
        for (size_t i = 0; i < arrays * n; i++) a[i] = 1.0 + i % 1000;
        for (int round = -1; round < ROUNDS; round++) {
#pragma omp barrier
#pragma omp master
            began = seconds();
#pragma omp barrier
            sink = OPERATIONS[op].run(a, b, c, n);
#pragma omp barrier
#pragma omp master
            if (round >= 0) took[round] = seconds() - began;
        }
    }
    (void)sink;
    qsort(took, ROUNDS, sizeof *took, ascending);
    printf("%.3f\n", 8e-9 * n * arrays * threads / took[ROUNDS / 2]);
    return 0;
}
