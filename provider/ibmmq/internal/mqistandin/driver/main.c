#include "driver.h"
#include <signal.h>
#include <sys/wait.h>

MQLONG cc, rc;
int checks;

MQHCONN connectTo(void) {
  MQCNO cno = {.StrucId = "CNO", .Version = MQCNO_VERSION_1, .Options = MQCNO_HANDLE_SHARE_NO_BLOCK};
  MQHCONN h;
  MQLONG c, r;
  MQCONNX("QM1", &cno, &h, &c, &r);
  if (c) {
    fprintf(stderr, "connect: %d\n", r);
    exit(2);
  }
  return h;
}

MQHOBJ openQ(MQHCONN h, const char *name, MQLONG options, MQLONG *c, MQLONG *r) {
  MQOD od = {.StrucId = "OD", .Version = MQOD_VERSION_1, .ObjectType = MQOT_Q};
  strncpy(od.ObjectName, name, sizeof od.ObjectName - 1);
  MQHOBJ o;
  MQOPEN(h, &od, options, &o, c, r);
  return o;
}

MQMD newMd(void) {
  return (MQMD){.StrucId = "MD", .Version = MQMD_VERSION_1, .MsgType = MQMT_DATAGRAM, .Expiry = MQEI_UNLIMITED,
                .Encoding = MQENC_NATIVE, .Priority = MQPRI_PRIORITY_AS_Q_DEF, .Persistence = MQPER_PERSISTENT,
                .Format = MQFMT_STRING};
}

void putAs(MQHCONN h, const char *q, const char *text, MQLONG options, MQLONG priority, MQLONG expiry, MQLONG persistence,
           MQLONG *c, MQLONG *r) {
  MQOD od = {.StrucId = "OD", .Version = MQOD_VERSION_1, .ObjectType = MQOT_Q};
  strncpy(od.ObjectName, q, sizeof od.ObjectName - 1);
  MQMD md = newMd();
  md.Priority = priority;
  md.Expiry = expiry;
  md.Persistence = persistence;
  MQPMO pmo = {.StrucId = "PMO", .Version = MQPMO_VERSION_1, .Options = options};
  MQPUT1(h, &od, &md, &pmo, (MQLONG)strlen(text), (void *)text, c, r);
}

void put(MQHCONN h, const char *q, const char *text, MQLONG options) {
  putAs(h, q, text, options, 4, MQEI_UNLIMITED, MQPER_PERSISTENT, &cc, &rc);
}

MQLONG get(MQHCONN h, MQHOBJ o, MQLONG options, MQLONG wait, char *text, MQLONG room, MQMD *md, MQLONG *c, MQLONG *r) {
  MQGMO gmo = {.StrucId = "GMO", .Version = MQGMO_VERSION_1, .Options = options, .WaitInterval = wait};
  MQMD own = newMd();
  MQLONG length = 0;
  MQGET(h, o, md ? md : &own, &gmo, room - 1, text, &length, c, r);
  text[length < room ? length : room - 1] = 0;
  return length;
}

const char *got(MQHCONN h, MQHOBJ o) {
  static char t[64];
  get(h, o, MQGMO_SYNCPOINT, 0, t, sizeof t, NULL, &cc, &rc);
  if (cc == MQCC_FAILED) snprintf(t, sizeof t, "%d", rc);
  return t;
}

/* Another copy of this program holds the queue manager. */
static pid_t startServer(const char *self, const char *address) {
  int out[2], in[2];
  char line[200];
  if (pipe(out) || pipe(in)) exit(2);
  pid_t p = fork();
  if (p == 0) {
    dup2(out[1], 1);
    close(out[0]);
    close(in[1]);
    dup2(in[0], 0);
    execl(self, self, "serve", address, NULL);
    _exit(2);
  }
  close(out[1]);
  close(in[0]); /* in[1] stays open: when we end, so does the server */
  FILE *f = fdopen(out[0], "r");
  if (!fgets(line, sizeof line, f)) exit(2);
  return p;
}

static void *untilParentGoes(void *unused) {
  char c;
  (void)unused;
  while (read(0, &c, 1) > 0) {
  }
  exit(0);
}

static void all(void) {
  semantics();
  properties();
  strict();
  waiting();
  losses();
  stops();
  states();
  mqstandin_reset();
}

int main(int argc, char **argv) {
  if (argc == 3 && !strcmp(argv[1], "serve")) {
    pthread_t t;
    int fd = mqstandin_listen(argv[2]);
    if (fd < 0) return 2;
    puts("ready");
    fflush(stdout);
    pthread_create(&t, NULL, untilParentGoes, NULL);
    mqstandin_serve(fd);
    return 1;
  }
  if (argc > 1 && !strcmp(argv[1], "client")) return clientMain(argc, argv);
  if (argc == 1) {
    all();
    printf("driver, one process: %d checks passed\n", checks);
    return 0;
  }
  /* driver ADDRESS: the same and more through a socket */
  pid_t server = startServer(argv[0], argv[1]);
  mqstandin_use(argv[1]);
  all();
  processes(argv[0], argv[1]);
  CHECK(kill(server, SIGTERM) == 0 && waitpid(server, NULL, 0) == server);
  MQHCONN h;
  FAILS(MQCONN("QM1", &h, &cc, &rc), MQRC_HOST_NOT_AVAILABLE);
  printf("driver, two processes: %d checks passed\n", checks);
  return 0;
}
