/* Message handles and properties. */
#include "driver.h"

void properties(void) {
  MQHCONN h = connectTo();
  MQHMSG in, out;
  MQCMHO cmho = {.StrucId = "CMHO", .Version = 1};
  MQDMHO dmho = {.StrucId = "DMHO", .Version = 1};
  MQSMPO smpo = {.StrucId = "SMPO", .Version = 1};
  MQDMPO dmpo = {.StrucId = "DMPO", .Version = 1};
  MQPD pd = {.StrucId = "PD", .Version = 1};
  OK(MQCRTMH(h, &cmho, &in, &cc, &rc));
  OK(MQCRTMH(h, &cmho, &out, &cc, &rc));
  MQINT64 n = 42;
  MQCHARV a = {.VSPtr = "alpha", .VSLength = 5}, b = {.VSPtr = "beta", .VSLength = 4}, none = {0};
  MQCHARV bad = {.VSPtr = "a b", .VSLength = 3};
  OK(MQSETMP(h, in, &smpo, &a, &pd, MQTYPE_INT64, 8, &n, &cc, &rc));
  OK(MQSETMP(h, in, &smpo, &b, &pd, MQTYPE_STRING, 3, "one", &cc, &rc));
  OK(MQSETMP(h, in, &smpo, &b, &pd, MQTYPE_STRING, 4, "four", &cc, &rc));
  FAILS(MQSETMP(h, in, &smpo, &none, &pd, MQTYPE_NULL, 0, NULL, &cc, &rc), MQRC_PROPERTY_NAME_LENGTH_ERR);
  FAILS(MQSETMP(h, in, &smpo, &bad, &pd, MQTYPE_NULL, 0, NULL, &cc, &rc), MQRC_PROPERTY_NAME_ERROR);
  FAILS(MQSETMP(h, in, &smpo, &a, &pd, MQTYPE_INT64, 4, &n, &cc, &rc), MQRC_BUFFER_LENGTH_ERROR);
  FAILS(MQSETMP(h, in, &smpo, &a, &pd, 3, 4, &n, &cc, &rc), MQRC_PROPERTY_TYPE_ERROR);
  MQOD od = {.StrucId = "OD", .Version = 1, .ObjectType = MQOT_Q, .ObjectName = "DEV.QUEUE.3"};
  MQPMO pmo = {.StrucId = "PMO", .Version = 3, .OriginalMsgHandle = in, .Action = MQACTP_NEW};
  MQMD md = newMd();
  OK(MQPUT1(h, &od, &md, &pmo, 0, NULL, &cc, &rc));
  OK(MQDLTMP(h, in, &dmpo, &a, &cc, &rc));
  GIVES(MQDLTMP(h, in, &dmpo, &a, &cc, &rc), MQCC_WARNING, MQRC_PROPERTY_NOT_AVAILABLE);
  MQHOBJ o = openQ(h, "DEV.QUEUE.3", MQOO_INPUT_SHARED, &cc, &rc);
  MQGMO gmo = {.StrucId = "GMO", .Version = 4, .Options = MQGMO_PROPERTIES_IN_HANDLE, .MsgHandle = out};
  MQLONG length, type;
  md = newMd();
  OK(MQGET(h, o, &md, &gmo, 0, NULL, &length, &cc, &rc));
  char nameOut[16], value[16];
  MQIMPO impo = {.StrucId = "IMPO", .Version = 1, .Options = MQIMPO_INQ_FIRST,
                 .ReturnedName = {.VSPtr = nameOut, .VSBufSize = sizeof nameOut}};
  MQCHARV all = {.VSPtr = "%", .VSLength = 1};
  OK(MQINQMP(h, out, &impo, &all, &pd, &type, 16, value, &length, &cc, &rc));
  CHECK(type == MQTYPE_INT64 && length == 8 && !memcmp(value, &n, 8) && !strncmp(nameOut, "alpha", 5));
  impo.Options = MQIMPO_INQ_NEXT;
  FAILS(MQINQMP(h, out, &impo, &all, &pd, &type, 2, value, &length, &cc, &rc), MQRC_PROPERTY_VALUE_TOO_BIG);
  CHECK(length == 4);
  impo.Options = MQIMPO_INQ_PROP_UNDER_CURSOR;
  OK(MQINQMP(h, out, &impo, &all, &pd, &type, 16, value, &length, &cc, &rc));
  CHECK(!strncmp(value, "four", 4));
  impo.Options = MQIMPO_INQ_NEXT;
  FAILS(MQINQMP(h, out, &impo, &all, &pd, &type, 16, value, &length, &cc, &rc), MQRC_PROPERTY_NOT_AVAILABLE);
  impo.Options = MQIMPO_INQ_FIRST;
  OK(MQINQMP(h, out, &impo, &b, &pd, &type, 16, value, &length, &cc, &rc));
  CHECK(type == MQTYPE_STRING && length == 4);
  mqstandin_fail_next("MQINQMP", MQRC_HMSG_ERROR, 1);
  FAILS(MQINQMP(h, out, &impo, &b, &pd, &type, 16, value, &length, &cc, &rc), MQRC_HMSG_ERROR);
  OK(MQINQMP(h, out, &impo, &b, &pd, &type, 16, value, &length, &cc, &rc));
  MQHMSG was = in, gone = out + 1000;
  OK(MQDLTMH(h, &in, &dmho, &cc, &rc));
  CHECK(in == MQHM_UNUSABLE_HMSG && mqstandin_message_handles() == 1);
  FAILS(MQSETMP(h, was, &smpo, &a, &pd, MQTYPE_INT64, 8, &n, &cc, &rc), MQRC_HMSG_ERROR);
  FAILS(MQDLTMH(h, &gone, &dmho, &cc, &rc), MQRC_HMSG_ERROR);
  pmo.OriginalMsgHandle = was;
  FAILS(MQPUT1(h, &od, &md, &pmo, 0, NULL, &cc, &rc), MQRC_HMSG_ERROR);
  OK(MQDISC(&h, &cc, &rc));
  CHECK(mqstandin_message_handles() == 0);
}
