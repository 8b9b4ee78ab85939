/* Small things both sides use. */
#define _GNU_SOURCE
#include "wire.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *const mqsVerbName[MQS_CALLS] = {
    [MQS_CONNX] = "MQCONNX", [MQS_DISC] = "MQDISC",   [MQS_OPEN] = "MQOPEN",   [MQS_CLOSE] = "MQCLOSE",
    [MQS_PUT] = "MQPUT",     [MQS_PUT1] = "MQPUT1",   [MQS_GET] = "MQGET",     [MQS_CMIT] = "MQCMIT",
    [MQS_BACK] = "MQBACK",   [MQS_INQ] = "MQINQ",     [MQS_STAT] = "MQSTAT",   [MQS_CRTMH] = "MQCRTMH",
    [MQS_DLTMH] = "MQDLTMH", [MQS_SETMP] = "MQSETMP", [MQS_INQMP] = "MQINQMP", [MQS_DLTMP] = "MQDLTMP"};

int mqsVerbOf(const char *name) {
  for (int i = 0; name && i < MQS_CALLS; i++)
    if (!strcmp(mqsVerbName[i], name)) return i;
  return -1;
}

void mqsField(char *to, size_t room, const char *from, size_t n) {
  size_t end = strnlen(from, n < room - 1 ? n : room - 1);
  memcpy(to, from, end);
  while (end && to[end - 1] == ' ') end--;
  to[end] = 0;
}

void mqsPad(char *to, const char *from, size_t n) {
  size_t l = strnlen(from, n);
  memcpy(to, from, l);
  memset(to + l, ' ', n - l);
}

static void *need(void *p) {
  if (p) return p;
  fputs("mqstandin: out of memory\n", stderr);
  abort();
}

void *mqsAlloc(size_t n) { return need(calloc(1, n ? n : 1)); }
void *mqsGrow(void *p, size_t n) { return need(realloc(p, n)); }

void *mqsCopy(const void *from, size_t n) {
  char *to = need(malloc(n + 1));
  if (n) memcpy(to, from, n);
  to[n] = 0; /* so that text can be used as it is */
  return to;
}

int64_t mqsNowMs(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}
