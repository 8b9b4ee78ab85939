package house

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)(?:\s+"[^"]*")?\)`)
	inlineCode   = regexp.MustCompile("`[^`]*`")
	heading      = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*$`)
)

func isMarkdown(name string) bool { return strings.HasSuffix(name, ".md") }

// proseLines calls f for each line of a document that is not in a code block.
func proseLines(text string, f func(number int, line string)) {
	number, code := 0, false
	for line := range strings.Lines(text) {
		number++
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
			continue
		}
		if !code {
			f(number, strings.TrimRight(line, "\r\n"))
		}
	}
}

// anchors are the names by which a document's headings can be linked to.
func anchors(text string) []string {
	var found []string
	proseLines(text, func(_ int, line string) {
		if m := heading.FindStringSubmatch(line); m != nil {
			found = append(found, anchor(m[1]))
		}
	})
	return found
}

// anchor follows the rule of the usual hosting platforms: lower case, spaces
// become hyphens, punctuation goes.
func anchor(title string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(title) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 127:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// TestLinksLeadSomewhere checks every relative link of every document of the
// tree, the headings they point at included.
func TestLinksLeadSomewhere(t *testing.T) {
	for _, name := range treeFiles(t, isMarkdown) {
		text := readFile(t, name)
		proseLines(text, func(number int, line string) {
			for _, m := range markdownLink.FindAllStringSubmatch(inlineCode.ReplaceAllString(line, ""), -1) {
				link := m[1]
				if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
					continue
				}
				file, fragment, _ := strings.Cut(link, "#")
				target, targetText := name, text
				if file != "" {
					target = path.Join(path.Dir(name), file)
					stat, err := os.Stat(filepath.Join(root, filepath.FromSlash(target)))
					if err != nil || strings.HasPrefix(target, "../") {
						t.Errorf("%s:%d: the link to %s leads nowhere", name, number, link)
						continue
					}
					if stat.IsDir() {
						continue
					}
					targetText = readFile(t, target)
				}
				if fragment != "" && isMarkdown(target) && !slices.Contains(anchors(targetText), fragment) {
					t.Errorf("%s:%d: %s has no heading #%s", name, number, target, fragment)
				}
			}
		})
	}
}

var makeCommand = regexp.MustCompile("(?m)(?:^|`|&& )make ([a-z][a-z-]*)")

// TestMakeTargets: the targets are an interface. Those that are promised exist,
// each has its line in make help, and documents name no other.
func TestMakeTargets(t *testing.T) {
	promised := []string{"help", "demo", "test", "race", "lint", "fuzz", "bench", "test-ibmmq", "test-rabbitmq", "chaos", "model", "soak", "mutants", "ci"}
	makefile := readFile(t, "Makefile")
	explained := regexp.MustCompile(`(?m)^([a-z][a-z-]*):[^=\n]* ## .+ ## .+$`)
	var targets []string
	for _, m := range explained.FindAllStringSubmatch(makefile, -1) {
		targets = append(targets, m[1])
	}
	for _, target := range promised {
		if !slices.Contains(targets, target) {
			t.Errorf("the Makefile has no target %q with an explanation and a plain command", target)
		}
	}
	for _, target := range targets {
		if !slices.Contains(promised, target) {
			t.Errorf("the Makefile's target %q is not in this test's list", target)
		}
	}
	for _, name := range treeFiles(t, func(name string) bool {
		return isMarkdown(name) && (folder(name) == "." || within(name, "docs"))
	}) {
		for _, m := range makeCommand.FindAllStringSubmatch(readFile(t, name), -1) {
			if !slices.Contains(targets, m[1]) {
				t.Errorf("%s says \"make %s\"; the Makefile has no such target", name, m[1])
			}
		}
	}
}

func TestAnchor(t *testing.T) {
	for title, want := range map[string]string{
		"Not yet":                   "not-yet",
		"What `Stop` does, and not": "what-stop-does-and-not",
		"Stop & Shutdown":           "stop--shutdown",
	} {
		if got := anchor(title); got != want {
			t.Errorf("anchor(%q) = %q, want %q", title, got, want)
		}
	}
}
