package policies

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/client"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestFiltersBecomeAnExpression(t *testing.T) {
	for _, c := range []struct {
		reason, query, want string
		left                []string
	}{
		{"nothing asked for", "", "", nil},
		{"what is no filter", "sort=created_at&order=asc&group=rule&cursor=x", "", nil},
		{"texts", "severity=high&tool=gosec&category=Code&rule=G101&class=CWE-89",
			"finding.severity == 'high' &&\nfinding.category == 'Code' &&\nfinding.tool == 'gosec' &&\nfinding.ruleID == 'G101' &&\n" +
				"finding.class == 'CWE-89'", nil},
		{"where it is", "repo_id=shop&project_id=web&owner=team", "repository.name == 'shop' &&\nproject.name == 'web' &&\nproject.owner == 'team'", nil},
		{"a file", "file=test/a.go", "finding.path == 'test/a.go'", nil},
		{"a file whose name is not what it seems", "file=te%E2%80%8Bst/%E2%80%AEa.go", `finding.path == 'te\u200bst/\u202ea.go'`, nil},
		{"a folder", "file=test/", "finding.path.startsWith('test/')", nil},
		{"a vulnerability, whatever the case", "vulnerability=cve-1",
			"(finding.vulnerability.id.upperAscii() == 'CVE-1' || finding.vulnerability.aliases.exists(alias, alias.upperAscii() == 'CVE-1'))", nil},
		{"a package by its name", "package=OpenSSL", "finding.package.name.lowerAscii() == 'openssl'", nil},
		{"a package by its address", "package=pkg:npm/a",
			"(finding.package.purl == 'pkg:npm/a' || ['@', '?', '#'].exists(end, finding.package.purl.startsWith('pkg:npm/a' + end)))", nil},
		{"a package with a scope, whose @ some tools encode", "package=pkg:npm/%2540a/b",
			"(finding.package.purl == 'pkg:npm/@a/b' || ['@', '?', '#'].exists(end, finding.package.purl.startsWith('pkg:npm/@a/b' + end))" +
				" || finding.package.purl == 'pkg:npm/%40a/b' || ['@', '?', '#'].exists(end, finding.package.purl.startsWith('pkg:npm/%40a/b' + end)))", nil},
		{"a package's address without its name, after which @ begins a scope", "package=pkg:npm/",
			"(finding.package.purl == 'pkg:npm/' || ['?', '#'].exists(end, finding.package.purl.startsWith('pkg:npm/' + end)))", nil},
		{"a whole score", "min_score=7", "has(finding.score) && finding.score >= 7.0", nil},
		{"a score", "min_score=7.5", "has(finding.score) && finding.score >= 7.5", nil},
		{"times", "created_since=2026-01-01T01:00:00%2B01:00&created_until=2026-02-01t00:00:00z",
			"finding.detectedAt >= timestamp('2026-01-01T00:00:00Z') &&\nfinding.detectedAt < timestamp('2026-02-01T00:00:00Z')", nil},
		{"words", "text=SQL+in", "(finding.title.lowerAscii().contains('sql') || finding.path.lowerAscii().contains('sql')) &&\n" +
			"(finding.title.lowerAscii().contains('in') || finding.path.lowerAscii().contains('in'))", nil},
		{"what would end a text", `rule=%27%29+||+true+||+%28%27%5C%0A`, `finding.ruleID == '\') || true || (\'\\\u000a'`, nil},
		{"what policies ask for anyway", "status=open&user_status=open&rule=G1", "finding.ruleID == 'G1'", nil},
		{"what no expression can ask for", "status=closed&user_status=muted&stale=true&suppressed=false&updated_since=2026-01-01T00:00:00Z&policy=mute-a&rule=G1",
			"finding.ruleID == 'G1'", []string{"State", "Decision", "Decision in doubt", "Policy", "Suppressed in the source", "Changed since"}},
		{"what is only called so", "status=closed&policy=open&rule=G1", "finding.ruleID == 'G1'", []string{"State", "Policy"}},
		{"values that cannot be compared", "min_score=high&created_since=soon&text=+&rule=G1", "finding.ruleID == 'G1'",
			[]string{"Score of at least", "Found since", "Text"}},
	} {
		filters, err := url.ParseQuery(c.query)
		harness.Must(t, err)
		got, left := ruleOf(filters)
		harness.Same(t, c.reason, c.want, got)
		var labels []string
		for _, l := range left {
			labels = append(labels, l.Label)
			if l.Value == "" || l.Why == "" {
				t.Errorf("%s: %+v does not say what is left out, or why", c.reason, l)
			}
		}
		harness.Same(t, fmt.Sprintf("%s: left out", c.reason), c.left, labels)
	}
}

func TestSelectedFindingsLeadToWhatTheyHaveInCommon(t *testing.T) {
	service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rule, file, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/findings/"), "-")
		if rule == "gone" {
			w.WriteHeader(http.StatusNotFound)
		}
		// As the service names the members: a filter that is lost makes the rule wider.
		var f client.FindingFull
		f.Facts.Tool, f.Facts.RuleId, f.Facts.Class, f.Facts.Vulnerability.Id = "gosec", rule, "CWE-89", "CVE-1"
		f.Facts.Package.Name, f.Details.Location.FilePath, f.Details.Severity = "openssl", file, "high"
		f.Repo.Id, f.Project.Id = "shop", "web"
		harness.Must(t, json.NewEncoder(w).Encode(f))
	})
	const alike = "class=CWE-89&%spackage=openssl&project_id=web&repo_id=shop&rule=G1&severity=high&tool=gosec&vulnerability=CVE-1"
	v := &page.Visit{API: api.New(service, "", "")}
	for _, c := range []struct {
		reason   string
		selected []string
		want     string
	}{
		{"one", []string{"G1-a.go"}, fmt.Sprintf(alike, "file=a.go&")},
		{"two", []string{"G1-a.go", "G1-b.go"}, fmt.Sprintf(alike, "")},
		{"one that still exists", []string{"gone-first", "G1-a.go", "gone-last"}, fmt.Sprintf(alike, "file=a.go&")},
	} {
		common, err := commonFilters(t.Context(), v, c.selected)
		harness.Must(t, err)
		harness.Same(t, c.reason, c.want, common.Encode())
	}
	_, err := commonFilters(t.Context(), v, []string{"gone-first", "gone-last"})
	if !api.Is(err, http.StatusPreconditionFailed) {
		t.Errorf("none that still exists: %v", err)
	}
}

// One finding can have 335 kB, so that a form of 3 kB could make the service hold 100 MiB, and many forms end it.
func TestSelectedFindingsAreReadOneByOneAndOnce(t *testing.T) {
	large := `{"repo":{"id":"shop"},"details":{"code":"` + strings.Repeat("x", 300_000) + `"}}`
	asked, before, last := 0, int64(0), int64(0)
	service := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch asked++; asked {
		case 1:
			before = harness.Heap()
		case page.MaxSelected:
			last = harness.Heap()
		}
		_, _ = w.Write([]byte(large))
	})
	v := &page.Visit{API: api.New(service, "", "")}
	selected := make([]string, page.MaxSelected)
	for i := range selected {
		selected[i] = fmt.Sprintf("f-%d", i)
	}
	_, err := commonFilters(t.Context(), v, selected)
	harness.Must(t, err)
	if last-before > 4<<20 {
		t.Errorf("%d findings take %d bytes", asked, last-before)
	}
	asked = 0
	_, err = commonFilters(t.Context(), v, slices.Repeat([]string{"f-1"}, page.MaxSelected))
	harness.Must(t, err)
	harness.Same(t, "how often a finding is read that was selected repeatedly", 1, asked)
}

// In a manifest the policy's strings stay strings, whatever they contain.
func TestAManifestHoldsWhatThePolicySays(t *testing.T) {
	p, err := draft{Name: "p", Match: "finding.title == 'a: \"b\"\n# c'", UserStatus: "muted", Reason: "duplicate", MaxFindings: "7", Until: "2099-01-01"}.policy()
	harness.Must(t, err)
	p.Set.Comment = "- x: &y\n---\n"
	got, err := yamlOf(p, "acme")
	harness.Must(t, err)
	harness.Contains(t, "the manifest", got, "name: p", "namespace: org-acme", "mode: Preview", "maxFindings: 7", "reason: duplicate",
		"validUntil: \"2099-01-01T23:59:59Z\"", "kind: TriagePolicy")
	harness.Lacks(t, "a text ends no document", got, "\n---")
}
