/* The queue manager as a process of its own:  mqstandin-qmgr ADDRESS
 * Prints "ready ADDRESS" when clients may come, and ends when its standard input
 * does, so that it never outlives the test that started it. */
#include <mqstandin.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <unistd.h>

static void *untilParentGoes(void *unused) {
  char c;
  (void)unused;
  while (read(0, &c, 1) > 0) {
  }
  exit(0);
}

int main(int argc, char **argv) {
  pthread_t t;
  int fd = argc == 2 ? mqstandin_listen(argv[1]) : -1;
  if (fd < 0) {
    fprintf(stderr, "usage: %s unix:PATH | tcp:HOST:PORT (one that is free)\n", argv[0]);
    return 2;
  }
  const char *colon = strrchr(argv[1], ':');
  if (!strncmp(argv[1], "tcp:", 4)) printf("ready %.*s:%d\n", (int)(colon - argv[1]), argv[1], mqstandin_port(fd));
  else printf("ready %s\n", argv[1]);
  fflush(stdout);
  if (pthread_create(&t, NULL, untilParentGoes, NULL)) return 1;
  mqstandin_serve(fd);
  return 1;
}
