/* What programs of this process passed to MQCONNX, for tests of settings that nothing
 * here acts upon. */
#define _GNU_SOURCE
#include "client.h"
#include <cmqxc.h>
#include <mqstandin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Passed {
  struct Passed *next;
  char appl[29];
  char *text;
} Passed;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Passed *all; /* the last of each application name */

static void field(FILE *out, const char *name, const char *from, size_t n) {
  char text[265];
  mqsField(text, sizeof text, from, n);
  fprintf(out, "%s=%s\n", name, text);
}

static void pointed(FILE *out, const char *name, const void *at, MQLONG length) {
  fprintf(out, "%s=%.*s\n", name, at ? (int)length : 0, at ? (const char *)at : "");
}

static void channel(FILE *out, const MQCD *cd) {
  field(out, "MQCD.ChannelName", cd->ChannelName, 20);
  field(out, "MQCD.ConnectionName", cd->ConnectionName, 264);
  fprintf(out, "MQCD.Version=%d\nMQCD.MaxMsgLength=%d\nMQCD.HeartbeatInterval=%d\n", cd->Version, cd->MaxMsgLength, cd->HeartbeatInterval);
  if (cd->Version >= MQCD_VERSION_7) field(out, "MQCD.SSLCipherSpec", cd->SSLCipherSpec, 32);
  if (cd->Version >= MQCD_VERSION_9) fprintf(out, "MQCD.SharingConversations=%d\n", cd->SharingConversations);
  if (cd->Version >= MQCD_VERSION_11) field(out, "MQCD.CertificateLabel", cd->CertificateLabel, 64);
}

static void write(FILE *out, const MQCNO *cno) {
  const MQCD *cd = cno->Version >= MQCNO_VERSION_2 ? cno->ClientConnPtr : NULL;
  const MQSCO *sco = cno->Version >= MQCNO_VERSION_4 ? cno->SSLConfigPtr : NULL;
  const MQCSP *csp = cno->Version >= MQCNO_VERSION_5 ? cno->SecurityParmsPtr : NULL;
  fprintf(out, "MQCNO.Options=%d\n", cno->Options);
  if (cd) channel(out, cd);
  if (sco) {
    fprintf(out, "MQSCO.Version=%d\n", sco->Version);
    field(out, "MQSCO.KeyRepository", sco->KeyRepository, 256);
    if (sco->Version >= MQSCO_VERSION_5) field(out, "MQSCO.CertificateLabel", sco->CertificateLabel, 64);
  }
  if (csp) {
    fprintf(out, "MQCSP.AuthenticationType=%d\n", csp->AuthenticationType);
    pointed(out, "MQCSP.CSPUserId", csp->CSPUserIdPtr, csp->CSPUserIdLength);
    pointed(out, "MQCSP.CSPPassword", csp->CSPPasswordPtr, csp->CSPPasswordLength);
  }
}

void mqsPassed(const char *appl, const MQCNO *cno) {
  char *text = NULL;
  size_t n;
  FILE *out = open_memstream(&text, &n);
  if (!out) abort();
  write(out, cno);
  fclose(out);
  pthread_mutex_lock(&lock);
  Passed *p = all;
  while (p && strcmp(p->appl, appl)) p = p->next;
  if (!p) {
    p = mqsAlloc(sizeof *p);
    snprintf(p->appl, sizeof p->appl, "%s", appl);
    p->next = all;
    all = p;
  }
  free(p->text);
  p->text = text;
  pthread_mutex_unlock(&lock);
}

API int mqstandin_passed(const char *appl, char *to, int room) {
  int n = -1;
  pthread_mutex_lock(&lock);
  for (Passed *p = all; p; p = p->next)
    if (!strcmp(p->appl, appl)) n = snprintf(to, (size_t)room, "%s", p->text);
  pthread_mutex_unlock(&lock);
  return n;
}
