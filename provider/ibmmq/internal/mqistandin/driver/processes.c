/* Clients that are killed, frozen, and a queue manager that is. */
#include "driver.h"
#include <signal.h>
#include <sys/wait.h>

/* driver client ADDRESS WHAT: gets a message (and says so), or waits for one; then
 * reads a line and tells how its commit ended. */
int clientMain(int argc, char **argv) {
  char line[8];
  if (argc != 4) return 2;
  mqstandin_use(argv[2]);
  MQHCONN h = connectTo();
  MQHOBJ o = openQ(h, Q1, MQOO_INPUT_SHARED, &cc, &rc);
  if (!strcmp(argv[3], "wait")) {
    char t[8];
    get(h, o, MQGMO_SYNCPOINT | MQGMO_WAIT, MQWI_UNLIMITED, t, sizeof t, NULL, &cc, &rc);
  } else {
    printf("%s\n", got(h, o));
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) return 3;
    MQCMIT(h, &cc, &rc);
  }
  printf("%d\n", rc);
  return 0;
}

typedef struct {
  pid_t pid;
  FILE *in, *out;
} Child;

static Child start(const char *self, const char *address, const char *what) {
  int in[2], out[2];
  Child c;
  if (pipe(in) || pipe(out)) exit(2);
  if (!(c.pid = fork())) {
    dup2(in[0], 0);
    dup2(out[1], 1);
    close(in[1]);
    close(out[0]);
    execl(self, self, "client", address, what, NULL);
    _exit(2);
  }
  close(in[0]);
  close(out[1]);
  c.in = fdopen(in[1], "w");
  c.out = fdopen(out[0], "r");
  return c;
}

static const char *line(Child *c) {
  static char l[64];
  if (!fgets(l, sizeof l, c->out)) strcpy(l, "(end)");
  l[strcspn(l, "\n")] = 0;
  return l;
}

static void end(Child *c, int signal) {
  if (signal) kill(c->pid, signal);
  fclose(c->in);
  fclose(c->out);
  waitpid(c->pid, NULL, 0);
}

void processes(const char *self, const char *address) {
  mqstandin_reset();
  MQHCONN h = connectTo();
  MQHOBJ o = openQ(h, Q1, MQOO_INPUT_SHARED, &cc, &rc);

  /* killed: what it held is back at once, in its place */
  OK(put(h, Q1, "1", 0));
  OK(put(h, Q1, "2", 0));
  Child c = start(self, address, "hold");
  CHECK(!strcmp(line(&c), "1") && mqstandin_available(Q1) == 1);
  end(&c, SIGKILL);
  SOON(mqstandin_available(Q1) == 2);
  CHECK(mqstandin_connections() == 1 && !strcmp(got(h, o), "1") && !strcmp(got(h, o), "2"));
  OK(MQCMIT(h, &cc, &rc));

  /* killed while it waits, or while its call is held */
  c = start(self, address, "wait");
  SOON(mqstandin_waiters(Q1) == 1);
  end(&c, SIGKILL);
  SOON(mqstandin_waiters(Q1) == 0 && mqstandin_connections() == 1);
  mqstandin_hold("MQGET", 0);
  c = start(self, address, "wait");
  SOON(mqstandin_held() == 1);
  end(&c, SIGKILL);
  SOON(mqstandin_held() == 0 && mqstandin_connections() == 1);
  mqstandin_release();

  /* killed while its call is held and its connection already broken */
  mqstandin_hold("MQGET", 0);
  c = start(self, address, "wait");
  SOON(mqstandin_held() == 1);
  mqstandin_stop(MQRC_Q_MGR_STOPPING);
  mqstandin_stop(0);
  CHECK(mqstandin_held() == 1 && mqstandin_connections() == 0);
  end(&c, SIGKILL);
  SOON(mqstandin_held() == 0);
  mqstandin_release();
  MQDISC(&h, &cc, &rc);
  h = connectTo();
  o = openQ(h, Q1, MQOO_INPUT_SHARED, &cc, &rc);

  /* a unit of work that ends well in another process */
  OK(put(h, Q1, "3", 0));
  c = start(self, address, "hold");
  CHECK(!strcmp(line(&c), "3"));
  fputs("go\n", c.in);
  fflush(c.in);
  CHECK(!strcmp(line(&c), "0"));
  end(&c, 0);
  SOON(mqstandin_connections() == 1);
  CHECK(mqstandin_available(Q1) == 0);

  /* frozen: locked for the heartbeat time, then back; thawed, it is told */
  const char *slow = getenv("DRIVER_HEARTBEAT_MS"); /* for tools that slow it down */
  int ms = slow ? atoi(slow) : 1000;
  mqstandin_heartbeat(ms);
  OK(put(h, Q1, "4", 0));
  c = start(self, address, "hold");
  CHECK(!strcmp(line(&c), "4"));
  kill(c.pid, SIGSTOP);
  usleep(100000); /* well within the heartbeat time: still locked */
  CHECK(mqstandin_available(Q1) == 0 && mqstandin_connections() == 2);
  SOON(mqstandin_available(Q1) == 1);
  CHECK(!strcmp(got(h, o), "4") && mqstandin_connections() == 1);
  OK(MQCMIT(h, &cc, &rc));
  kill(c.pid, SIGCONT);
  fputs("go\n", c.in);
  fflush(c.in);
  CHECK(!strcmp(line(&c), "2009"));
  end(&c, 0);
  mqstandin_heartbeat(5 * ms);
  OK(MQDISC(&h, &cc, &rc));
}
