package ibmmq_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The files that set IBM's queue manager up for the example, and the commands that the documentation gives, are held against what IBM documents:
// they cannot be run without a queue manager.

// mqscValues are the attributes that we use and what they take: words, or a range. From "DEFINE queues" and "ALTER CHANNEL" (MQSC reference, IBM
// MQ 9.2) and the attribute pages of BOTHRESH, MAXDEPTH, HBINT, DISCINT, SHARECNV, MAXINST and MAXINSTC.
var mqscValues = map[string]map[string]string{
	"QLOCAL": {
		"MSGDLVSQ": "FIFO PRIORITY", "DEFPSIST": "YES NO", "SHARE": "", "NOSHARE": "", "DEFSOPT": "SHARED EXCL", "MAXDEPTH": "0-999999999",
		"BOTHRESH": "0-999999999", "BOQNAME": "name 48", "REPLACE": "", "GET": "ENABLED DISABLED", "PUT": "ENABLED DISABLED",
	},
	"CHANNEL": {
		"CHLTYPE": "SVRCONN", "SHARECNV": "0-999999999", "MAXINST": "0-999999999", "MAXINSTC": "0-999999999", "HBINT": "0-999999",
		"DISCINT": "0-999999",
	},
}

var (
	mqscCommand   = regexp.MustCompile(`^(DEFINE|ALTER) (QLOCAL|CHANNEL)\((\S+?)\)(?: (.*))?$`)
	mqscAttribute = regexp.MustCompile(`^([A-Z]+)(?:\(([^()]*)\))?$`)
	mqscName      = regexp.MustCompile(`^'?[A-Z0-9._/%]+'?$`)
)

// mqscFault says what is wrong with one command; "": nothing.
func mqscFault(line string) string {
	parts := mqscCommand.FindStringSubmatch(line)
	if parts == nil {
		return "is no DEFINE or ALTER of a QLOCAL or CHANNEL"
	}
	most := map[string]int{"QLOCAL": 48, "CHANNEL": 20}[parts[2]]
	if name := strings.Trim(parts[3], "'"); !mqscName.MatchString(parts[3]) || len(name) > most {
		return "names an object " + parts[3]
	}
	for _, text := range strings.Fields(parts[4]) {
		a := mqscAttribute.FindStringSubmatch(text)
		if a == nil {
			return "has " + text
		}
		takes, known := mqscValues[parts[2]][a[1]]
		if !known || (takes == "") == strings.Contains(text, "(") || !mqscTakes(takes, a[2]) {
			return fmt.Sprintf("has %s, want %q", text, takes)
		}
	}
	if parts[2] == "CHANNEL" && !strings.Contains(line, "CHLTYPE(SVRCONN)") {
		return "does not say the type of the channel"
	}
	return ""
}

func mqscTakes(takes, value string) bool {
	if from, to, isRange := strings.Cut(takes, "-"); isRange {
		n, err := strconv.Atoi(value)
		least, _ := strconv.Atoi(from)
		most, _ := strconv.Atoi(to)
		return err == nil && n >= least && n <= most
	}
	if takes == "name 48" {
		return mqscName.MatchString(value) && len(strings.Trim(value, "'")) <= 48
	}
	return takes == "" || slices.Contains(strings.Fields(takes), value)
}

func TestMQSCOfTheExampleAndTheDocumentation(t *testing.T) {
	commands := 0
	check := func(file, line string) {
		t.Helper()
		commands++
		if fault := mqscFault(line); fault != "" {
			t.Errorf("%s: %s\n%s", file, line, fault)
		}
	}
	for line := range strings.Lines(published(t, "../../examples/ibmmq/20-keyseq.mqsc")) {
		line = strings.TrimSuffix(line, "\n")
		if len(line) > 2048 || strings.HasSuffix(line, "+") || strings.HasSuffix(line, "-") || strings.HasSuffix(line, "\t") {
			t.Errorf("%q would be cut, continued or refused", line)
		}
		if line != "" && !strings.HasPrefix(line, "*") {
			check("20-keyseq.mqsc", line)
		}
	}
	for line := range strings.Lines(published(t, "../../docs/ibmmq.md")) {
		if strings.HasPrefix(line, "DEFINE ") || strings.HasPrefix(line, "ALTER ") {
			check("ibmmq.md", strings.TrimSpace(line))
		}
	}
	if commands < 8 {
		t.Errorf("%d commands were found", commands)
	}
	for _, bad := range []string{
		"DEFINE QLOCAL('A') MSGDLVSQ(LIFO)", "DEFINE QLOCAL('A') DEFSOPT", "DEFINE QLOCAL('A') SHARE(YES)", "ALTER CHANNEL('A') HBINT(5)",
		"DEFINE QLOCAL('A') HBINT(5)", "DEFINE QLOCAL('" + strings.Repeat("A", 49) + "')", "ALTER CHANNEL('A') CHLTYPE(SVRCONN) HBINT(1000000)", "DEFINE QUEUE(A)",
	} {
		if mqscFault(bad) == "" {
			t.Errorf("%s passes", bad)
		}
	}
}

// The compose file: image, variables and paths as in the documentation of IBM's container (docs/usage.md and docs/developer-config.md of
// ibm-messaging/mq-container), the ports on the loopback interface, and the mounted files where they are.
func TestComposeFileOfTheExample(t *testing.T) {
	text := published(t, "../../examples/ibmmq/compose.yaml")
	for _, want := range []string{"image: icr.io/ibm-messaging/mq:", "LICENSE: accept", "MQ_QMGR_NAME: QM1", "- 127.0.0.1:1414:1414", "test: [CMD, chkmqready]"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	known := []string{"MQ_QMGR_NAME", "MQ_APP_PASSWORD", "MQ_ADMIN_PASSWORD", "MQ_DEV", "MQ_ENABLE_METRICS", "MQ_ENABLE_EMBEDDED_WEB_SERVER"}
	for _, name := range regexp.MustCompile(`(?m)^ +(MQ_[A-Z_]+): `).FindAllStringSubmatch(text, -1) {
		if !slices.Contains(known, name[1]) {
			t.Errorf("%s is no variable of the image", name[1])
		}
	}
	if password := regexp.MustCompile(`MQ_APP_PASSWORD: \$\{MQ_PASSWORD:-(.*)\}`).FindStringSubmatch(text); password == nil || len(password[1]) < 8 {
		t.Errorf("the password %q is not set, or has fewer than the 8 characters that the image asks for", password)
	}
	mounts := regexp.MustCompile(`- \./(\S+?):/etc/mqm/(\S+?\.(?:mqsc|ini)):ro`).FindAllStringSubmatch(text, -1)
	if len(mounts) != 2 {
		t.Fatalf("%d files are mounted into /etc/mqm, want 2", len(mounts))
	}
	for _, m := range mounts {
		published(t, "../../examples/ibmmq/"+m[1])
		if m[2] < "10-dev.mqsc" {
			t.Errorf("%s comes before the image's own 10-dev.mqsc, which makes the channel that it alters", m[2])
		}
	}
	ini := published(t, "../../examples/ibmmq/20-keyseq.ini")
	if want := "Channels:\n   MaxChannels=1000\n   MaxActiveChannels=1000\nTCP:\n   KeepAlive=Yes\n"; ini != want {
		t.Errorf("20-keyseq.ini is %q, want stanzas and attributes as qm.ini has them: %q", ini, want)
	}
}

// published reads a file of the repository, which a module alone does not have.
func published(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		if _, err := os.Stat("../../go.work"); err != nil {
			t.Skip("only in the repository")
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
