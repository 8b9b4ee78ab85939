package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const published = `package ibmmq
const (
	MQRC_NONE int32 = 0
	MQRC_APPL_FIRST int32 = 900
	MQRC_ALIAS_BASE_Q_TYPE_ERROR int32 = 2001
	MQRC_SAME_NUMBER int32 = 2001
	MQWI_UNLIMITED int32 = -1
	MQFMT_STRING string = "MQSTR"
	MQGS_NOT_IN_GROUP rune = ' '
	MQOO_OUTPUT int32 = 16
	MQOO_UNUSED int32 = 32
)
`

const source = `package ibmmq
/*
#include <cmqc.h>
#if MQRC_NONE
#endif
*/
import "C"
/* MQOO_UNUSED is only talked about */
var a = C.MQWI_UNLIMITED + C.MQFMT_STRING
`

// generated runs gen on a small package and a C source, and returns both headers.
func generated(t *testing.T, c string) (macros, names string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"cmqc_linux_amd64.go": published, "mqi.go": source, "own.c": c} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "out")
	if err := generate(dir, out, []string{filepath.Join(dir, "own.c")}); err != nil {
		t.Fatal(err)
	}
	var texts [2]string
	for i, name := range []string{"mqconst.h", "cmqstrc.h"} {
		b, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(b)
	}
	return texts[0], texts[1]
}

func TestOnlyWhatIsNamed(t *testing.T) {
	macros, _ := generated(t, "int f(void) { return MQOO_OUTPUT + MQ_OWN_MACRO + MQGS_NOT_IN_GROUP; }")
	got := map[string]string{}
	for _, l := range strings.Split(macros, "\n") {
		if f := strings.SplitN(l, " ", 3); len(f) == 3 && f[0] == "#define" {
			got[f[1]] = strings.TrimSpace(f[2])
		}
	}
	want := map[string]string{"MQRC_NONE": "0", "MQWI_UNLIMITED": "(-1)", "MQFMT_STRING": `"MQSTR   "`,
		"MQGS_NOT_IN_GROUP": "' '", "MQOO_OUTPUT": "16"}
	if len(got) != len(want) {
		t.Errorf("got %v", got)
	}
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s is %q, want %q", name, got[name], text)
		}
	}
}

// The first name of a number is its name; limits of ranges are none.
func TestNames(t *testing.T) {
	_, names := generated(t, "")
	if !strings.Contains(names, `case 2001: return "MQRC_ALIAS_BASE_Q_TYPE_ERROR";`) || strings.Contains(names, "MQRC_SAME_NUMBER") ||
		strings.Contains(names, "MQRC_APPL_FIRST") {
		t.Error(names)
	}
}

func TestNothingToRead(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		if err := generate(dir, t.TempDir(), nil); err == nil {
			t.Errorf("generate(%q) passed", dir)
		}
	}
}
