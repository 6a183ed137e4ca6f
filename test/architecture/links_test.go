package architecture

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// Moving a page breaks links to it, and checking them by hand is not practical.
func TestEveryLinkOfThePagesLeadsSomewhere(t *testing.T) {
	root := harness.Root()
	seen := 0
	for _, page := range trackedPages(t, root) {
		for _, target := range links(readPage(t, page)) {
			seen++
			harness.Same(t, strings.TrimPrefix(page, root+"/")+" links to "+target, "", broken(t, page, target))
		}
	}
	if seen < 50 {
		t.Errorf("found %d links; did the form of the pages change?", seen)
	}
}

// The code map is useful only while it is correct.
func TestEveryPathOfTheCodeMapExists(t *testing.T) {
	root := harness.Root()
	paths := named.FindAllStringSubmatch(readPage(t, filepath.Join(root, "docs", "code-map.md")), -1)
	for _, path := range paths {
		if !exists(filepath.Join(root, path[1])) {
			t.Errorf("docs/code-map.md names %s, which does not exist", path[1])
		}
	}
	if len(paths) < 50 {
		t.Errorf("found %d paths; did the form of the page change?", len(paths))
	}
}

func TestALinkIsBrokenWithoutItsFileOrItsHeading(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	harness.Must(t, os.WriteFile(page, []byte("# One `thing` (of two)\n\n```sh\n# no heading\n```\n\n## Twice\n\n## Twice\n"), 0o600))
	for target, wanted := range map[string]bool{
		"page.md": true, "other.md": false,
		"#one-thing-of-two": true, "page.md#twice-1": true, "#twice-2": false, "#no-heading": false,
	} {
		if reason := broken(t, page, target); (reason == "") != wanted {
			t.Errorf("%s: %q", target, reason)
		}
	}
}

func trackedPages(t *testing.T, root string) []string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", "ls-files", "--", "*.md")
	command.Dir = root
	listed, err := command.Output()
	if err != nil {
		t.Fatal("git ls-files: ", err)
	}
	var pages []string
	for name := range strings.FieldsSeq(string(listed)) {
		if page := filepath.Join(root, name); exists(page) { // otherwise it was removed, but not yet committed
			pages = append(pages, page)
		}
	}
	return pages
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func readPage(t *testing.T, path string) string {
	t.Helper()
	return fenced.ReplaceAllString(harness.File(t, path), "")
}

var (
	fenced      = regexp.MustCompile("(?ms)^```.*?^```$")
	named       = regexp.MustCompile("`((?:api|apiserver|charts|cmd|config|controllers|docs|hack|internal|test)/[^`* ]+)`")
	link        = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading     = regexp.MustCompile(`(?m)^#+ (.*)$`)
	linkedTitle = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	dropped     = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// links returns the targets of a page's links within the repository.
func links(page string) []string {
	var out []string
	for _, match := range link.FindAllStringSubmatch(page, -1) {
		if !strings.Contains(match[1], "://") && !strings.HasPrefix(match[1], "mailto:") {
			out = append(out, match[1])
		}
	}
	return out
}

// broken returns why a link of the page is broken, or "" if it is not.
func broken(t *testing.T, page, target string) string {
	t.Helper()
	name, anchor, _ := strings.Cut(target, "#")
	file := page
	if name != "" {
		file = filepath.Join(filepath.Dir(page), name)
	}
	if !exists(file) {
		return "the file does not exist"
	}
	if anchor != "" && strings.HasSuffix(file, ".md") && !anchors(readPage(t, file))[anchor] {
		return "the page has no such heading"
	}
	return ""
}

// anchors returns the anchors that GitHub generates for a page's headings.
func anchors(page string) map[string]bool {
	out := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(page, -1) {
		title := linkedTitle.ReplaceAllString(strings.TrimSpace(match[1]), "$1")
		name := strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
		unique := name
		for n := 1; out[unique]; n++ {
			unique = name + "-" + string(rune('0'+n))
		}
		out[unique] = true
	}
	return out
}
