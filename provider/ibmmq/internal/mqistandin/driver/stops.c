/* Queue managers and channels that stop, restart, refuse; queues that do. */
#include "driver.h"
#include <cmqxc.h>
#include <time.h>

static const MQLONG quiesce[] = {MQRC_Q_MGR_QUIESCING, MQRC_CONNECTION_QUIESCING};
static const MQLONG ends[] = {MQRC_Q_MGR_STOPPING, MQRC_CONNECTION_STOPPING};

static void quiescing(void) {
  pthread_t t;
  for (int i = 0; i < 2; i++) {
    MQHCONN h = connectTo(), no;
    MQHOBJ o = openQ(h, Q1, MQOO_INPUT_SHARED, &cc, &rc);
    OK(put(h, Q1, "q", 0));
    CHECK(!strcmp(got(h, o), "q"));
    Getter g = {.h = connectTo(), .options = MQGMO_WAIT | MQGMO_FAIL_IF_QUIESCING, .wait = MQWI_UNLIMITED, .want = 1};
    pthread_create(&t, NULL, getter, &g);
    SOON(mqstandin_waiters(Q1) == 1);
    CHECK(mqstandin_stop(quiesce[i]) == 0);
    pthread_join(t, NULL);
    CHECK(g.rc == quiesce[i]);
    openQ(h, Q1, MQOO_OUTPUT | MQOO_FAIL_IF_QUIESCING, &cc, &rc);
    CHECK(cc == MQCC_FAILED && rc == quiesce[i]);
    FAILS(put(h, Q1, "q", MQPMO_FAIL_IF_QUIESCING), quiesce[i]);
    FAILS(MQCONN("QM1", &no, &cc, &rc), i ? MQRC_CHANNEL_NOT_AVAILABLE : MQRC_Q_MGR_QUIESCING);
    OK(MQCMIT(h, &cc, &rc)); /* what is open may be finished */
    CHECK(mqstandin_stop(0) == 0);
    OK(MQDISC(&h, &cc, &rc));
    OK(MQDISC(&g.h, &cc, &rc));
  }
  CHECK(mqstandin_stop(MQRC_Q_FULL) == -1);
}

static void stopping(void) {
  pthread_t t;
  for (int i = 0; i < 2; i++) {
    MQHCONN h = connectTo(), no;
    MQHOBJ o = openQ(h, Q1, MQOO_INPUT_SHARED, &cc, &rc);
    Getter g = {.h = connectTo(), .options = MQGMO_WAIT, .wait = MQWI_UNLIMITED, .want = 1};
    OK(put(h, Q1, "s", 0));
    CHECK(!strcmp(got(h, o), "s"));
    pthread_create(&t, NULL, getter, &g);
    SOON(mqstandin_waiters(Q1) == 1);
    CHECK(mqstandin_stop(ends[i]) == 0);
    pthread_join(t, NULL);
    CHECK(g.rc == ends[i] && mqstandin_available(Q1) == 1 && mqstandin_connections() == 0);
    FAILS(MQCONN("QM1", &no, &cc, &rc), i ? MQRC_CHANNEL_NOT_AVAILABLE : MQRC_Q_MGR_STOPPING);
    mqstandin_stop(0);
    FAILS(MQCMIT(h, &cc, &rc), ends[i]);
    FAILS(MQDISC(&h, &cc, &rc), ends[i]);
    CHECK(h == MQHC_UNUSABLE_HCONN);
    MQDISC(&g.h, &cc, &rc);
    mqstandin_reset();
  }
}

/* ---- connections of which the application hears otherwise ---- */

static void connecting(void) {
  MQHCONN no;
  CHECK(mqstandin_fail_after("MQCONNX", MQRC_CONNECTION_BROKEN, 0) == 0);
  OK(MQCONN("QM1", &no, &cc, &rc));
  OK(MQDISC(&no, &cc, &rc));
  CHECK(mqstandin_fail_next("MQCONNX", MQRC_CONNECTION_BROKEN, -1) == -1);
  CHECK(mqstandin_detect_after(-1) == 0 && mqstandin_fail_after("MQCONNX", MQRC_CONNECTION_BROKEN, 1) == 0);
  FAILS(MQCONN("QM1", &no, &cc, &rc), MQRC_CONNECTION_BROKEN);
  CHECK(no == MQHC_UNUSABLE_HCONN && mqstandin_connections() == 1 && mqstandin_unnoticed() == 1);
  CHECK(mqstandin_notice() == 1 && mqstandin_connections() == 0);
  CHECK(mqstandin_fail_after("MQCONNX", MQRC_Q_MGR_STOPPING, 1) == 0);
  FAILS(MQCONN("QM1", &no, &cc, &rc), MQRC_Q_MGR_STOPPING);
  CHECK(mqstandin_connections() == 0);
  mqstandin_reset();
}

static MQLONG encrypted(MQHCONN *h, const char *repository) {
  MQSCO sco = {.StrucId = "SCO", .Version = MQSCO_VERSION_5, .CertificateLabel = "mine"};
  MQCD cd = {.ChannelName = "DEV.APP.SVRCONN", .Version = MQCD_VERSION_11, .StrucLength = MQCD_LENGTH_11, .ChannelType = MQCHT_CLNTCONN,
             .TransportType = MQXPT_TCP, .SSLCipherSpec = "ANY_TLS12_OR_HIGHER"};
  MQCNO cno = {.StrucId = "CNO", .Version = MQCNO_VERSION_7, .ClientConnPtr = &cd, .SSLConfigPtr = repository ? &sco : NULL, .ApplName = "tls"};
  if (repository) strncpy(sco.KeyRepository, repository, sizeof sco.KeyRepository - 1);
  MQCONNX("QM1", &cno, h, &cc, &rc);
  return rc;
}

static void environment(void) {
  MQHCONN a, b, no;
  char text[4096], little[8];
  unsetenv("MQSSLKEYR");
  CHECK(mqstandin_passed("tls", text, sizeof text) == -1);
  CHECK(encrypted(&no, NULL) == MQRC_KEY_REPOSITORY_ERROR && cc == MQCC_FAILED && no == MQHC_UNUSABLE_HCONN);
  CHECK(encrypted(&no, "") == MQRC_KEY_REPOSITORY_ERROR);
  CHECK(encrypted(&a, "/one") == 0 && encrypted(&b, "/two") == MQRC_SSL_ALREADY_INITIALIZED && cc == MQCC_WARNING);
  CHECK(mqstandin_passed("tls", text, sizeof text) == (int)strlen(text) && strstr(text, "MQSCO.KeyRepository=/two\nMQSCO.CertificateLabel=mine\n"));
  CHECK(strstr(text, "MQCD.SSLCipherSpec=ANY_TLS12_OR_HIGHER\n") && mqstandin_passed("tls", little, sizeof little) == (int)strlen(text));
  mqstandin_fail_next("MQCONNX", MQRC_HOST_NOT_AVAILABLE, 1);
  CHECK(encrypted(&no, "/two") == MQRC_HOST_NOT_AVAILABLE);
  OK(MQDISC(&a, &cc, &rc));
  CHECK(encrypted(&no, NULL) == 0);
  OK(MQDISC(&no, &cc, &rc));
  OK(MQDISC(&b, &cc, &rc));
  CHECK(encrypted(&no, NULL) == MQRC_KEY_REPOSITORY_ERROR);
  setenv("MQSSLKEYR", "/three", 1);
  CHECK(encrypted(&a, NULL) == 0 && mqstandin_passed("tls", text, sizeof text) > 0 && !strstr(text, "MQSCO"));
  OK(MQDISC(&a, &cc, &rc));
}

static void restarting(void) {
  MQHCONN h = connectTo();
  MQHOBJ o = openQ(h, Q1, MQOO_INPUT_SHARED, &cc, &rc);
  OK(put(h, Q1, "1", 0));
  OK(put(h, Q1, "2", 0));
  OK(putAs(h, Q1, "3", 0, 4, MQEI_UNLIMITED, MQPER_NOT_PERSISTENT, &cc, &rc));
  CHECK(!strcmp(got(h, o), "1"));
  mqstandin_restart(60000);
  FAILS(MQCMIT(h, &cc, &rc), MQRC_CONNECTION_BROKEN);
  MQDISC(&h, &cc, &rc);
  FAILS(MQCONN("QM1", &h, &cc, &rc), MQRC_Q_MGR_NOT_AVAILABLE);
  mqstandin_restart(0);
  h = connectTo();
  o = openQ(h, Q1, MQOO_INPUT_SHARED, &cc, &rc);
  CHECK(!strcmp(got(h, o), "1") && !strcmp(got(h, o), "2") && !strcmp(got(h, o), "2033"));
  OK(MQCMIT(h, &cc, &rc));
  OK(MQDISC(&h, &cc, &rc));
}

static void connectAs(const char *qmgr, const char *channel, const char *user, const char *password, MQHCONN *h) {
  MQCD cd = {.Version = MQCD_VERSION_11, .StrucLength = MQCD_LENGTH_11, .ChannelType = MQCHT_CLNTCONN,
             .TransportType = MQXPT_TCP, .MaxMsgLength = 1000, .SharingConversations = 10};
  strncpy(cd.ChannelName, channel, sizeof cd.ChannelName - 1);
  MQCSP csp = {.StrucId = "CSP", .Version = 1, .AuthenticationType = MQCSP_AUTH_USER_ID_AND_PWD,
               .CSPUserIdPtr = (void *)user, .CSPUserIdLength = (MQLONG)strlen(user),
               .CSPPasswordPtr = (void *)password, .CSPPasswordLength = (MQLONG)strlen(password)};
  MQCNO cno = {.StrucId = "CNO", .Version = MQCNO_VERSION_7, .ClientConnPtr = &cd, .SecurityParmsPtr = &csp,
               .ApplName = "named"};
  MQCONNX((char *)qmgr, &cno, h, &cc, &rc);
}

static void refusing(void) {
  MQHCONN h, h2;
  FAILS(connectAs("QM2", "DEV.APP.SVRCONN", "app", "passw0rd", &h), MQRC_Q_MGR_NAME_ERROR);
  FAILS(connectAs("QM1", "NO.SUCH", "app", "passw0rd", &h), MQRC_UNKNOWN_CHANNEL_NAME);
  FAILS(connectAs("QM1", "DEV.APP.SVRCONN", "app", "wrong", &h), MQRC_NOT_AUTHORIZED);
  CHECK(h == MQHC_UNUSABLE_HCONN);
  OK(connectAs("*QM1", "DEV.APP.SVRCONN", "app", "passw0rd", &h));
  char big[1001] = {0};
  memset(big, 'x', 1000);
  OK(put(h, Q2, big, 0));
  /* the channel's limit holds for puts and gets; what is too long stays */
  char bigger[1002] = {0};
  memset(bigger, 'x', 1001);
  FAILS(put(h, Q2, bigger, 0), MQRC_DATA_LENGTH_ERROR);
  h2 = connectTo();
  OK(put(h2, Q1, bigger, 0));
  OK(MQDISC(&h2, &cc, &rc));
  MQHOBJ o = openQ(h, Q1, MQOO_INPUT_SHARED, &cc, &rc);
  CHECK(!strcmp(got(h, o), "2010") && mqstandin_available(Q1) == 1);
  FAILS(putAs(h, Q2, "", 0, 4, 0, 1, &cc, &rc), MQRC_EXPIRY_ERROR);
  const MQLONG limit[] = {MQRC_CHANNEL_NOT_AVAILABLE, MQRC_MAX_CONNS_LIMIT_REACHED};
  for (int i = 0; i < 2; i++) {
    mqstandin_limit_connections(2, limit[i]);
    h2 = connectTo();
    MQHCONN h3;
    FAILS(MQCONN("QM1", &h3, &cc, &rc), limit[i]);
    OK(MQDISC(&h2, &cc, &rc));
    mqstandin_detect_after(-1); /* a dead connection that is not noticed counts */
    h2 = connectTo();
    put(h2, Q1, "x", MQPMO_SYNCPOINT);
    mqstandin_break_oldest(1, 0);
    MQDISC(&h2, &cc, &rc);
    FAILS(MQCONN("QM1", &h3, &cc, &rc), limit[i]);
    mqstandin_notice();
    h2 = connectTo();
    OK(MQDISC(&h2, &cc, &rc));
  }
  CHECK(mqstandin_break("named", 1) == 1);
  FAILS(MQDISC(&h, &cc, &rc), MQRC_CONNECTION_BROKEN);
  mqstandin_reset();
}

static void inhibiting(void) {
  pthread_t t;
  MQHCONN h = connectTo();
  MQHOBJ o = openQ(h, Q1, MQOO_INPUT_SHARED, &cc, &rc);
  Getter g = {.h = connectTo(), .options = MQGMO_WAIT, .wait = MQWI_UNLIMITED, .want = 1};
  pthread_create(&t, NULL, getter, &g);
  SOON(mqstandin_waiters(Q1) == 1);
  mqstandin_define(Q1 ":get=0");
  pthread_join(t, NULL);
  CHECK(g.rc == MQRC_GET_INHIBITED);
  OK(put(h, Q1, "i", 0));
  CHECK(!strcmp(got(h, o), "2016"));
  mqstandin_define(Q1 ":get=1:put=0");
  CHECK(!strcmp(got(h, o), "i"));
  FAILS(put(h, Q1, "j", 0), MQRC_PUT_INHIBITED);
  mqstandin_reset();
  OK(put(h, Q1, "k", 0));
  OK(MQCMIT(h, &cc, &rc));
  mqstandin_latency(30000);
  struct timespec a, b;
  clock_gettime(CLOCK_MONOTONIC, &a);
  OK(MQCMIT(h, &cc, &rc));
  clock_gettime(CLOCK_MONOTONIC, &b);
  CHECK((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 >= 29);
  mqstandin_reset();
  OK(MQDISC(&h, &cc, &rc));
  OK(MQDISC(&g.h, &cc, &rc));
}

void stops(void) {
  mqstandin_reset();
  quiescing();
  stopping();
  connecting();
  environment();
  restarting();
  refusing();
  inhibiting();
  CHECK(mqstandin_connections() == 0);
}
