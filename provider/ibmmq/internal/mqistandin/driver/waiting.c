/* Gets that wait, and many threads at once. */
#include "driver.h"

atomic_int taken;

void *getter(void *arg) {
  Getter *g = arg;
  MQLONG c, r;
  char t[64];
  MQHOBJ o = openQ(g->h, Q1, MQOO_INPUT_SHARED, &c, &r);
  while (g->want-- > 0) {
    get(g->h, o, g->options, g->wait, t, sizeof t, NULL, &g->cc, &g->rc);
    if (g->cc) return NULL;
    atomic_fetch_add(&taken, 1);
    if (g->commit) MQCMIT(g->h, &c, &r);
  }
  MQCLOSE(g->h, &o, 0, &c, &r);
  return NULL;
}

static void crowd(MQHCONN h) {
  enum { N = 20, EACH = 50 };
  pthread_t t[N];
  Getter g[N];
  for (int i = 0; i < N; i++) {
    g[i] = (Getter){.h = connectTo(), .options = MQGMO_WAIT | MQGMO_SYNCPOINT, .wait = 10000, .want = EACH, .commit = true};
    pthread_create(&t[i], NULL, getter, &g[i]);
  }
  SOON(mqstandin_waiters(Q1) == N);
  for (int i = 0; i < N * EACH; i++)
    OK(putAs(h, Q1, "w", i % 2 ? MQPMO_SYNCPOINT : MQPMO_NO_SYNCPOINT, i % 10, MQEI_UNLIMITED, 1, &cc, &rc));
  OK(MQCMIT(h, &cc, &rc));
  for (int i = 0; i < N; i++) {
    pthread_join(t[i], NULL);
    CHECK(!g[i].cc);
    OK(MQDISC(&g[i].h, &cc, &rc));
  }
  CHECK(atomic_load(&taken) == N * EACH && mqstandin_available(Q1) == 0);
}

/* What wakes a waiter and what ends its wait. */
static void wakeups(MQHCONN h) {
  pthread_t t;
  Getter g = {.h = connectTo(), .options = MQGMO_WAIT, .wait = MQWI_UNLIMITED, .want = 1};
  pthread_create(&t, NULL, getter, &g);
  SOON(mqstandin_waiters(Q1) == 1);
  OK(put(h, Q1, "one", MQPMO_NO_SYNCPOINT));
  pthread_join(t, NULL);
  CHECK(!g.cc);

  MQHOBJ o = openQ(h, Q1, MQOO_INPUT_SHARED, &cc, &rc);
  OK(put(h, Q1, "again", 0));
  CHECK(!strcmp(got(h, o), "again"));
  g = (Getter){.h = g.h, .options = MQGMO_WAIT, .wait = MQWI_UNLIMITED, .want = 1};
  pthread_create(&t, NULL, getter, &g);
  SOON(mqstandin_waiters(Q1) == 1);
  FAILS(MQCMIT(g.h, &cc, &rc), MQRC_CALL_IN_PROGRESS); /* its connection is taken */
  OK(MQBACK(h, &cc, &rc));
  pthread_join(t, NULL);
  CHECK(!g.cc);

  g = (Getter){.h = g.h, .options = MQGMO_WAIT, .wait = 30, .want = 1};
  getter(&g);
  CHECK(g.rc == MQRC_NO_MSG_AVAILABLE);
  OK(MQDISC(&g.h, &cc, &rc));
}

/* A waiter woken for one message may take another: the rest must still find its getter. */
typedef struct {
  MQHCONN h;
  MQBYTE correlId[24];
  MQLONG cc;
} Picker;

static void *picker(void *arg) {
  Picker *p = arg;
  MQLONG c, r, length;
  char t[64];
  MQHOBJ o = openQ(p->h, Q1, MQOO_INPUT_SHARED, &c, &r);
  MQGMO gmo = {.StrucId = "GMO", .Version = MQGMO_VERSION_1, .Options = MQGMO_WAIT, .WaitInterval = 3000};
  MQMD md = newMd();
  memcpy(md.CorrelId, p->correlId, 24);
  MQGET(p->h, o, &md, &gmo, sizeof t, t, &length, &p->cc, &r);
  MQCLOSE(p->h, &o, 0, &c, &r);
  return NULL;
}

static void handover(MQHCONN h) {
  Picker p[3] = {{.h = connectTo()}, {.h = connectTo(), .correlId = "B"}, {.h = connectTo()}};
  MQOD od = {.StrucId = "OD", .Version = 1, .ObjectType = MQOT_Q, .ObjectName = Q1};
  for (int round = 0; round < 100; round++) {
    pthread_t t[3];
    for (int i = 0; i < 3; i++) {
      pthread_create(&t[i], NULL, picker, &p[i]);
      SOON(mqstandin_waiters(Q1) == i + 1);
    }
    for (int i = 0; i < 2; i++) {
      MQMD md = newMd();
      MQPMO pmo = {.StrucId = "PMO", .Version = 1, .Options = MQPMO_SYNCPOINT};
      md.Priority = i ? 9 : 4;
      if (i) md.CorrelId[0] = 'B';
      OK(MQPUT1(h, &od, &md, &pmo, 0, NULL, &cc, &rc));
    }
    OK(MQCMIT(h, &cc, &rc));
    SOON(mqstandin_available(Q1) == 0);
    MQMD md = newMd();
    MQPMO pmo = {.StrucId = "PMO", .Version = 1, .Options = MQPMO_NO_SYNCPOINT};
    md.CorrelId[0] = 'B';
    OK(MQPUT1(h, &od, &md, &pmo, 0, NULL, &cc, &rc)); /* for the one that is left */
    for (int i = 0; i < 3; i++) {
      pthread_join(t[i], NULL);
      CHECK(!p[i].cc);
    }
  }
  for (int i = 0; i < 3; i++) OK(MQDISC(&p[i].h, &cc, &rc));
}

/* A waiter that is woken for a message and dies before it takes it: another has it. */
static void deadWaiter(MQHCONN h) {
  for (int round = 0; round < 50; round++) {
    pthread_t t[2];
    MQCNO cno = {.StrucId = "CNO", .Version = MQCNO_VERSION_7, .ApplName = "dies"};
    Getter g[2] = {{.h = 0}, {.h = connectTo()}};
    OK(MQCONNX("QM1", &cno, &g[0].h, &cc, &rc));
    for (int i = 0; i < 2; i++) {
      g[i].options = MQGMO_WAIT | MQGMO_SYNCPOINT;
      g[i].wait = MQWI_UNLIMITED;
      g[i].want = 1;
      pthread_create(&t[i], NULL, getter, &g[i]);
      SOON(mqstandin_waiters(Q1) == i + 1);
    }
    OK(put(h, Q1, "d", 0));
    CHECK(mqstandin_break("dies", 1) == 1);
    SOON(mqstandin_available(Q1) == 0);
    pthread_join(t[0], NULL);
    pthread_join(t[1], NULL);
    CHECK(!g[1].cc);
    MQDISC(&g[0].h, &cc, &rc);
    OK(MQDISC(&g[1].h, &cc, &rc));
  }
}

/* Puts, gets, commits and backouts from many threads; nothing lost, nothing twice. */
enum { MIXED = 3000 };
static atomic_int done;
static atomic_uchar seen[MIXED];

static void *mixer(void *arg) {
  unsigned seed = (unsigned)(uintptr_t)arg;
  MQLONG c, r;
  char t[64];
  MQHCONN h = connectTo();
  MQHOBJ o = openQ(h, Q1, MQOO_INPUT_SHARED, &c, &r);
  int batch[8], n = 0;
  while (atomic_load(&done) < MIXED) {
    get(h, o, MQGMO_SYNCPOINT | MQGMO_WAIT, 5, t, sizeof t, NULL, &c, &r);
    if (!c) batch[n++] = atoi(t);
    if (n && (c || n == 8 || rand_r(&seed) % 3 == 0)) {
      if (rand_r(&seed) % 4 == 0) {
        MQBACK(h, &c, &r);
      } else {
        for (int i = 0; i < n; i++) atomic_fetch_add(&seen[batch[i]], 1);
        MQCMIT(h, &c, &r);
        atomic_fetch_add(&done, n);
      }
      n = 0;
    }
  }
  MQDISC(&h, &c, &r);
  return NULL;
}

static void churn(MQHCONN h) {
  pthread_t t[8];
  char text[16];
  atomic_store(&done, 0);
  memset((void *)seen, 0, sizeof seen);
  for (uintptr_t i = 0; i < 8; i++) pthread_create(&t[i], NULL, mixer, (void *)(i + 1));
  for (int i = 0; i < MIXED; i++) {
    snprintf(text, sizeof text, "%d", i);
    OK(putAs(h, Q1, text, MQPMO_SYNCPOINT, i % 10, MQEI_UNLIMITED, 1, &cc, &rc));
    if (i % 50 == 49) OK(MQCMIT(h, &cc, &rc));
  }
  for (int i = 0; i < 8; i++) pthread_join(t[i], NULL);
  for (int i = 0; i < MIXED; i++) CHECK(atomic_load(&seen[i]) == 1);
}

void waiting(void) {
  mqstandin_reset();
  atomic_store(&taken, 0);
  MQHCONN h = connectTo();
  crowd(h);
  wakeups(h);
  handover(h);
  deadWaiter(h);
  churn(h);
  OK(MQDISC(&h, &cc, &rc));
  CHECK(mqstandin_connections() == 0);
}
