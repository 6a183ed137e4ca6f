package schema_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// edit is a change of an unstructured object: paths are separated by dots, and nil removes a
// member.
type edit map[string]any

func (e edit) apply(object map[string]any) {
	for path, value := range e {
		parts := strings.Split(path, ".")
		if value == nil {
			unstructured.RemoveNestedField(object, parts...)
			continue
		}
		if err := unstructured.SetNestedField(object, value, parts...); err != nil {
			panic(err)
		}
	}
}

func content(t *testing.T, object client.Object) *unstructured.Unstructured {
	t.Helper()
	out, err := kruntime.DefaultUnstructuredConverter.ToUnstructured(object)
	harness.Must(t, err)
	delete(out, "status")
	return &unstructured.Unstructured{Object: out}
}

const (
	at    = "2026-01-02T03:04:05Z"
	later = "2026-01-02T03:05:05Z"
)

func organization() client.Object { return builder.Organization("cel").Build() }
func key() client.Object          { return builder.APIKey("cel").In("default").Build() }
func repository() client.Object   { return builder.Repository("cel").In("default").Build() }
func project() client.Object      { return builder.Project("cel").In("default").Build() }
func finding() client.Object      { return builder.Finding("cel").In("default").Build() }
func scan() client.Object {
	return builder.Scan("cel", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)).In("default").Build()
}

func review() client.Object { return builder.Review("cel").In("default").Build() }

func issue() client.Object { return builder.ReviewIssue("cel").In("default").SeenIn("abc").Build() }

func policy() client.Object { return builder.TriagePolicy("cel", "true").In("default").Build() }

func operation() client.Object { return builder.TriageOperation("cel", "G1").In("default").Build() }

func endpoint() client.Object { return builder.WebhookEndpoint("cel").In("default").Build() }

func delivery() client.Object {
	return builder.WebhookDelivery("cel", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)).In("default").Build()
}

// commits returns n reviewed commits.
func commits(n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = map[string]any{"sha": fmt.Sprintf("%040d", i), "reviewedAt": at}
	}
	return out
}

var rulesAtCreate = []struct {
	name    string
	object  func() client.Object
	edit    edit
	refused string // part of the message; empty if the object is accepted
	reason  string
}{
	{"organization of 59 characters", organization, edit{"metadata.name": strings.Repeat("a", 59)}, "", "org-<name> is at most 63 characters"},
	{"organization of 60 characters", organization, edit{"metadata.name": strings.Repeat("a", 60)}, "at most 59 characters", "its namespace's name would be too long"},
	{"organization with a dot", organization, edit{"metadata.name": "acme.example"}, "hold no dot", "a namespace's name has none"},
	{"key life of a minute", organization, edit{"spec.apiKeys": map[string]any{"maxLifetime": "1m"}}, "", "the shortest"},
	{"most requests of a key", organization, edit{"spec.apiKeys": map[string]any{"maxRequestsPerMinute": int64(1_000_000)}}, "", "as high as a limit can be"},
	{"no requests of a key", organization, edit{"spec.apiKeys": map[string]any{"maxRequestsPerMinute": int64(0)}}, "spec.apiKeys.maxRequestsPerMinute", "such a key is of no use"},
	{"key life of a second", organization, edit{"spec.apiKeys": map[string]any{"maxLifetime": "1s"}}, "maxLifetime must be hours, minutes and seconds of at least 1m", "over before it is used"},
	{"no retention of findings", organization, edit{"spec.retention": map[string]any{"closedFindings": "0s"}}, "", "at once is a choice"},
	{"negative retention of findings", organization, edit{"spec.retention": map[string]any{"closedFindings": "-1s"}}, "closedFindings must be hours, minutes and seconds and not negative", "no one can mean it"},
	{"negative retention of scans", organization, edit{"spec.retention": map[string]any{"finishedScans": "-1s"}}, "finishedScans must be hours, minutes and seconds and not negative", "no one can mean it"},
	{"negative retention of reviews", organization, edit{"spec.retention": map[string]any{"idleReviews": "-1s"}}, "idleReviews must be hours, minutes and seconds and not negative", "no one can mean it"},
	{"negative retention of deliveries", organization, edit{"spec.retention": map[string]any{"finishedDeliveries": "-1s"}}, "finishedDeliveries must be hours, minutes and seconds and not negative", "no one can mean it"},
	{"folders that become projects", organization, edit{"spec.imports": map[string]any{"projects": []any{"services/*", "lib-*", "a.b/c"}}}, "", "folders of a repository"},
	{"a folder outside of the repository", organization, edit{"spec.imports": map[string]any{"projects": []any{"../*"}}}, "must be folders from the root", "there is nothing"},
	{"folders of any depth", organization, edit{"spec.imports": map[string]any{"projects": []any{"services/**"}}}, "must be folders from the root", "no bound on their number"},
	{"a folder from the root of the machine", organization, edit{"spec.imports": map[string]any{"projects": []any{"/services"}}}, "should match", "paths are a repository's"},
	{"overlap of 30 days", key, edit{"spec.rotation": map[string]any{"serial": int64(1), "overlap": "720h"}}, "", "the longest"},
	{"overlap of more", key, edit{"spec.rotation": map[string]any{"serial": int64(1), "overlap": "721h"}}, "overlap must be hours, minutes and seconds between", "a token that was replaced must end"},
	{"endpoint: overlap of 30 days", endpoint, edit{"spec.rotation": map[string]any{"serial": int64(1), "overlap": "720h"}}, "", "the longest"},
	{"endpoint: overlap of more", endpoint, edit{"spec.rotation": map[string]any{"serial": int64(1), "overlap": "721h"}}, "overlap must be hours, minutes and seconds between", "a secret that was replaced must end"},
	{"endpoint: negative overlap", endpoint, edit{"spec.rotation": map[string]any{"serial": int64(1), "overlap": "-1s"}}, "overlap must be hours, minutes and seconds between", "no one can mean it"},
	{"endpoint: rotation 0", endpoint, edit{"spec.rotation": map[string]any{"serial": int64(0)}}, "should be greater than or equal to 1", "0 is what was there before the first"},
	{"endpoint: rotation of a Secret of one's own", endpoint, edit{"spec.rotation": map[string]any{"serial": int64(1)}, "spec.secretRef": map[string]any{"name": "mine"}},
		"rotation is for the Secret that is made for the endpoint", "it may be someone else's, and declared elsewhere"},
	{"negative overlap", key, edit{"spec.rotation": map[string]any{"serial": int64(1), "overlap": "-1s"}}, "overlap must be hours, minutes and seconds between", "no one can mean it"},
	{"key with an empty list of scopes", key, edit{"spec.scopes": []any{}}, "at least 1 item", "without the list it has five"},
	{"endpoint with an empty list of events", endpoint, edit{"spec.events": []any{}}, "at least 1 item", "without the list it gets all"},
	{"clone URL with a user", repository, edit{"spec.cloneURL": "ssh://git@example.com/a.git"}, "", "a user's name is no secret"},
	{"clone URL with a password", repository, edit{"spec.cloneURL": "https://u:p@example.com/a.git"}, "cloneURL must hold no credentials", "everyone who reads the resource would read it"},
	{"clone URL with a token", repository, edit{"spec.cloneURL": "HTTPS://ghp_x@github.com/a/b.git"}, "cloneURL must hold no credentials", "a token is written as the user's name"},
	{"ssh URL with a password", repository, edit{"spec.cloneURL": "ssh://git:p@example.com/a.git"}, "cloneURL must hold no credentials", "everyone who reads the resource would read it"},
	{"page with a password", repository, edit{"spec.url": "https://u:p@example.com/a"}, "url must hold no credentials", "the REST API shows it"},
	{"page with a token", repository, edit{"spec.url": "https://ghp_x@github.com/a/b"}, "url must hold no credentials", "the REST API shows it"},
	{"page with a token after a blank", repository, edit{"spec.url": " https://ghp_x@github.com/a/b"}, "url must hold no credentials", "it was pasted"},
	{"page with a ? in its password", repository, edit{"spec.url": "https://u:pa?ss@example.com/a"}, "url must hold no credentials", "a port has only digits"},
	{"page with a / in its password", repository, edit{"spec.url": "https://u:pa/ss@example.com/a"}, "url must hold no credentials", "a port has only digits"},
	{"clone URL with a / in its password", repository, edit{"spec.cloneURL": "ssh://git:pa/ss@example.com/a.git"}, "cloneURL must hold no credentials", "a port has only digits"},
	{"commit's page with a / in its password", repository, edit{"spec.lastCommit.link": "https://u:pa/ss@example.com/a"}, "link must hold no credentials", "a port has only digits"},
	{"page with an @ in its path", repository, edit{"spec.url": "https://example.com/@a/b"}, "", "it is no user's"},
	{"URLs with an @ in what follows the port", repository, edit{"spec.url": "https://example.com:8443?next=a@b", "spec.cloneURL": "https://example.com:8443#a@b",
		"spec.lastCommit.link": "https://example.com:8443?next=a@b"}, "", "it is no user's"},
	{"URLs with an IPv6 address and an @ in the query", repository, edit{"spec.url": "https://[2001:db8::1]:8443?next=a@b", "spec.cloneURL": "https://[::1]?next=a@b",
		"spec.lastCommit.link": "https://[2001:db8::1]:8443?next=a@b"}, "", "what follows its first colon is no password"},
	{"commit's page with a token", repository, edit{"spec.lastCommit.link": "https://x-access-token:ghs_x@github.com/a/b/commit/c0ffee"},
		"link must hold no credentials", "the REST API shows it"},
	{"folder with dots in its name", project, edit{"spec.relativePath": "services/..api.."}, "", "a name like others"},
	{"language of 64 characters", repository, edit{"spec.languages": map[string]any{strings.Repeat("a", 64): int64(1)}}, "", "the longest"},
	{"language of 65 characters", repository, edit{"spec.languages": map[string]any{strings.Repeat("a", 65): int64(1)}}, "at most 64 characters", "keys of maps take room too"},
	{"language of no code", repository, edit{"spec.languages": map[string]any{"Go": int64(0)}}, "", "an empty file"},
	{"language of less than no code", repository, edit{"spec.languages": map[string]any{"Go": int64(-5)}}, "a language has 0 bytes of code or more", "REST shows it as a count of bytes"},
	{"folder beside the repository", project, edit{"spec.relativePath": "../billing"}, "relativePath must be a folder in the repository", "imports would take it for billing"},
	{"folder beside the repository after a no-break space", project, edit{"spec.relativePath": "\u00a0../billing"}, "relativePath must be a folder in the repository", "imports trim every blank"},
	{"folder that leads up", project, edit{"spec.relativePath": `services\.. `}, "relativePath must be a folder in the repository", "imports read a backslash as a slash"},
	{"deployment of 65 characters", project, edit{"spec.deployments": map[string]any{strings.Repeat("a", 65): "x"}}, "at most 64 characters", "keys of maps take room too"},
	{"scan that runs", scan, edit{}, "", "neither end is there"},
	{"scan of an upload whose id is no name", scan, edit{"spec.upload": map[string]any{"id": "U/1", "scans": int64(1)}}, "spec.upload.id", "it is part of a URL"},
	{"scan of an upload of none", scan, edit{"spec.upload": map[string]any{"id": "u-1", "scans": int64(0)}}, "spec.upload.scans", "this is one"},
	{"scan that has ended", scan, edit{"spec.completedAt": later, "spec.outcome": "Succeeded"}, "", "both ends are there"},
	{"scan with an end and no outcome", scan, edit{"spec.completedAt": later}, "set together", "did it succeed?"},
	{"review of 250 commits", review, edit{"spec.reviewedCommits": commits(v1alpha1.MaxReviewedCommits)}, "", "the most"},
	{"review of 251 commits", review, edit{"spec.reviewedCommits": commits(v1alpha1.MaxReviewedCommits + 1)}, "Too many", "an object is bounded"},
	{"review of a commit twice", review, edit{"spec.reviewedCommits": append(commits(1), commits(1)...)}, "Duplicate", "a commit has one place in the order"},
	{"review of no pull request", review, edit{"spec.prNumber": int64(0)}, "greater than or equal to 1", "no provider counts from 0"},
	{"issue seen in a commit twice", issue, edit{"spec.seenInCommits": []any{"a", "a"}}, "Duplicate", "it shows it or it does not"},
	{"issue without a title", issue, edit{"spec.title": ""}, "at least 1", "people read it"},
	{"finding with a reason for nothing", finding, edit{"spec.triage.reason": "duplicate"}, "reason and expiresAt belong to a decision", "nobody would see it"},
	{"finding whose open state ends", finding, edit{"spec.triage.userStatus": "open", "spec.triage.expiresAt": later}, "reason and expiresAt belong to a decision", "there is nothing to end"},
	{"issue with a reason for nothing", issue, edit{"spec.triage.reason": "duplicate"}, "reason and expiresAt belong to a decision", "nobody would see it"},
	{"policy of an hour", policy, edit{"spec.validFrom": "2026-01-02T03:04:05Z", "spec.validUntil": "2026-01-02T04:04:05Z"}, "", "it ends after it begins"},
	{"policy that ends as it begins", policy, edit{"spec.validFrom": at, "spec.validUntil": at}, "validUntil must be after validFrom", "it would decide about nothing"},
	{"policy that mutes for no reason", policy, edit{"spec.set.reason": nil}, "a policy that mutes needs a reason", "people give one too"},
	{"operation of 201 characters", operation, edit{"metadata.name": strings.Repeat("a", 201)}, "the name is at most 200 characters", "its parts' names would be too long"},
	{"operation on ids", operation, edit{"spec.select": map[string]any{"ids": []any{"f-1"}}}, "", "one by one"},
	{"operation on findings without a class", operation, edit{"spec.select": map[string]any{"class": ""}}, "", "that is a filter"},
	{"operation on everything", operation, edit{"spec.select": map[string]any{}}, "select has ids, or at least one filter", "a filter that was forgotten"},
	{"operation on ids and filters", operation, edit{"spec.select.ids": []any{"f-1"}}, "select has ids, or at least one filter", "which of them?"},
	{"operation that does nothing", operation, edit{"spec.set": map[string]any{}}, "set userStatus or comments", "it would be a preview of nothing"},
	{"operation that reopens for a reason", operation, edit{"spec.set.userStatus": "open"}, "reason and expiresAt belong to a decision", "as of a finding"},
	{"operation that undoes", operation, edit{"spec": map[string]any{"undo": "x"}}, "", "another one"},
	{"operation that undoes and decides", operation, edit{"spec.undo": "x"}, "select and set, or undo alone", "one or the other"},
	{"negative retention of operations", organization, edit{"spec.retention": map[string]any{"finishedOperations": "-1s"}}, "finishedOperations must be hours, minutes and seconds and not negative", "no one can mean it"},
	{"endpoint at a port", endpoint, edit{"spec.url": "http://hooks.example.com:8080/findings"}, "", "a URL with a host"},
	{"endpoint without a host", endpoint, edit{"spec.url": "https:///findings"}, "must be a URL with a host", "nothing can be sent there"},
	{"endpoint with a password", endpoint, edit{"spec.url": "https://u:p@hooks.example.com"}, "hold no credentials", "everyone who reads the resource would read it"},
	{"endpoint with a / in its password", endpoint, edit{"spec.url": "https://u:pa/ss@hooks.example.com"}, "must be a URL with a host", "a port has only digits"},
	{"endpoint with a token before its port", endpoint, edit{"spec.url": "https://token@hooks.example.com:8443/@ops"}, "hold no credentials", "an @ in the path does not hide it"},
	{"endpoint with an @ in its path and query", endpoint, edit{"spec.url": "https://chat.example.com/hooks/@ops?to=ann@example.com"}, "", "it is no user's"},
	{"endpoint with an @ in a query without a path", endpoint, edit{"spec.url": "https://chat.example.com:8443?to=ann@example.com"}, "", "it is no user's"},
	{"scan with an outcome and no end", scan, edit{"spec.outcome": "Failed"}, "set together", "since when?"},
}

func TestRulesAtCreate(t *testing.T) {
	acceptAllKinds(t)
	for _, row := range rulesAtCreate {
		t.Run(row.name, func(t *testing.T) {
			object := content(t, row.object())
			row.edit.apply(object.Object)
			wantAnswer(t, env.Client.Create(t.Context(), object, client.DryRunAll), row.refused, row.reason)
		})
	}
}

var (
	upload   = map[string]any{"id": "u-1", "scans": int64(2)}
	lease    = map[string]any{"name": "import-1", "holder": "runner-1"}
	ended    = edit{"spec.completedAt": later, "spec.outcome": "Succeeded"}
	detected = edit{"spec.detectedAt": at}
)

var rulesAtUpdate = []struct {
	name    string
	object  func() client.Object
	before  edit
	edit    edit
	refused string
	reason  string
}{
	{"finding to another repository", finding, nil, edit{"spec.repositoryRef.name": "other"}, "spec.repositoryRef and spec.projectRef are immutable", "its name is derived from it"},
	{"finding to another project", finding, nil, edit{"spec.projectRef.name": "other"}, "spec.repositoryRef and spec.projectRef are immutable", "its name is derived from it"},
	{"finding without a project", finding, nil, edit{"spec.projectRef": nil}, "spec.projectRef: Required", "taken away, it could be added anew with another value"},
	{"finding without a repository", finding, nil, edit{"spec.repositoryRef": nil}, "spec.repositoryRef: Required", "taken away, it could be added anew with another value"},
	{"finding without a project's name", finding, nil, edit{"spec.projectRef.name": nil}, "spec.projectRef.name: Required", "taken away, it could be added anew with another value"},
	{"finding without a spec", finding, nil, edit{"spec": nil}, "spec: Required", "with the spec every rule in it would go"},
	{"finding detected at another time", finding, detected, edit{"spec.detectedAt": later}, "spec.detectedAt is immutable", "REST's created_at"},
	{"finding detected at no time", finding, detected, edit{"spec.detectedAt": nil}, "spec.detectedAt is immutable", "taken away, it could be added anew with another value"},
	{"finding detected late", finding, nil, edit{"spec.detectedAt": later}, "spec.detectedAt is immutable", "absent means the creation, and that is a value"},
	{"finding detected at the same time, written otherwise", finding, edit{"spec.detectedAt": "2026-01-01T01:00:00+01:00"}, edit{"spec.detectedAt": "2026-01-01t00:00:00z"}, "", "importers write UTC, whatever was written first"},
	{"finding detected in the same second, without its fraction", finding, edit{"spec.detectedAt": "2026-01-02T03:04:05.9Z"}, detected, "", "importers write whole seconds, whatever was written first"},
	{"finding with another severity", finding, detected, edit{"spec.details.severity": "high"}, "", "facts change"},
	{"project to another repository", project, nil, edit{"spec.repositoryRef.name": "other"}, "immutable", "its findings would not follow"},
	{"project without a repository", project, nil, edit{"spec.repositoryRef": nil}, "spec.repositoryRef: Required", "taken away, it could be added anew with another value"},
	{"project without a spec", project, nil, edit{"spec": nil}, "spec: Required", "with the spec every rule in it would go"},
	{"project with another owner", project, nil, edit{"spec.owner": "other"}, "", "metadata changes"},
	{"scan of another repository", scan, nil, edit{"spec.repositoryRef.name": "other"}, "immutable", "a scan is of one thing"},
	{"scan of another project", scan, nil, edit{"spec.projectRef.name": "other"}, "immutable", "a scan is of one thing"},
	{"scan by another tool", scan, nil, edit{"spec.tool": "other"}, "immutable", "a scan is by one tool"},
	{"scan of another upload", scan, edit{"spec.upload": upload}, edit{"spec.upload.id": "u-2"}, "immutable", "an upload lists its scans"},
	{"scan of an upload after all", scan, nil, edit{"spec.upload": upload}, "immutable", "an upload lists its scans"},
	{"scan of an upload no more", scan, edit{"spec.upload": upload}, edit{"spec.upload": nil}, "immutable", "an upload lists its scans"},
	{"scan imported by another key", scan, edit{"spec.importedBy": "apikey/ci"}, edit{"spec.importedBy": "apikey/rosa"}, "immutable", "it says who did it"},
	{"scan imported by no key", scan, edit{"spec.importedBy": "apikey/ci"}, edit{"spec.importedBy": nil}, "immutable", "it says who did it"},
	{"scan with another heartbeat", scan, edit{"spec.lease": lease}, edit{"spec.lease.holder": "somebody"}, "immutable", "another import would keep it alive"},
	{"scan with no heartbeat any more", scan, edit{"spec.lease": lease}, edit{"spec.lease": nil}, "immutable", "it would run for an hour"},
	{"scan that makes progress", scan, edit{"spec.lease": lease, "spec.upload": upload}, edit{"spec.progress": map[string]any{"done": int64(3), "total": int64(9)}}, "", "what progress is"},
	{"scan of another category", scan, nil, edit{"spec.category": "Secret"}, "immutable", "a scan is of one category"},
	{"scan started at another time", scan, nil, edit{"spec.startedAt": later}, "immutable", "imports are ordered by it"},
	{"scan without a start", scan, nil, edit{"spec.startedAt": nil}, "spec.startedAt: Required", "taken away, it could be added anew with another value"},
	{"scan without a tool", scan, nil, edit{"spec.tool": nil}, "spec.tool: Required", "taken away, it could be added anew with another value"},
	{"scan without a spec", scan, nil, edit{"spec": nil}, "spec: Required", "with the spec every rule in it would go"},
	{"scan that ends", scan, nil, ended, "", "once"},
	{"scan that ends otherwise", scan, ended, edit{"spec.outcome": "Failed"}, "a scan that has ended is immutable", "once"},
	{"scan that begins again", scan, ended, edit{"spec.outcome": nil, "spec.completedAt": nil}, "a scan that has ended is immutable", "taken away, it could be added anew with another value"},
	{"scan with late counts", scan, ended, edit{"spec.counts": map[string]any{"created": int64(1)}}, "a scan that has ended is immutable", "the end is the last thing written"},
	{"review of another pull request", review, nil, edit{"spec.prNumber": int64(2)}, "are immutable", "a review is of one pull request"},
	{"review of another repository", review, nil, edit{"spec.repositoryRef.name": "other"}, "are immutable", "a review is of one pull request"},
	{"review of one more commit", review, edit{"spec.reviewedCommits": commits(1)}, edit{"spec.reviewedCommits": commits(2)}, "", "pull requests go on"},
	{"review of one commit too many", review, edit{"spec.reviewedCommits": commits(v1alpha1.MaxReviewedCommits)}, edit{"spec.reviewedCommits": commits(v1alpha1.MaxReviewedCommits + 1)}, "Too many", "the importer takes the oldest away"},
	{"review that is closed", review, nil, edit{"spec.prStatus": "closed"}, "", "pull requests are closed"},
	{"review that is opened again", review, edit{"spec.prStatus": "closed"}, edit{"spec.prStatus": "open"}, "", "closed is not for ever"},
	{"merged review with another title", review, edit{"spec.prStatus": "merged"}, edit{"spec.prTitle": "other"}, "", "the rule is about the status alone"},
	{"merged review that is closed", review, edit{"spec.prStatus": "merged"}, edit{"spec.prStatus": "closed"}, "a merged pull request stays merged", "no provider unmerges"},
	{"review without a number", review, nil, edit{"spec.prNumber": nil}, "spec.prNumber: Required", "taken away, it could be added anew with another value"},
	{"review without a repository", review, nil, edit{"spec.repositoryRef": nil}, "spec.repositoryRef: Required", "taken away, it could be added anew with another value"},
	{"review without a spec", review, nil, edit{"spec": nil}, "spec: Required", "with the spec every rule in it would go"},
	{"review that is merged", review, nil, edit{"spec.prStatus": "merged"}, "", "pull requests are merged"},
	{"review that is no longer merged", review, edit{"spec.prStatus": "merged"}, edit{"spec.prStatus": "open"}, "a merged pull request stays merged", "no provider unmerges"},
	{"review without a status", review, edit{"spec.prStatus": "merged"}, edit{"spec.prStatus": nil}, "spec.prStatus: Required", "taken away, it could be added anew with another value"},
	{"issue of another review", issue, nil, edit{"spec.reviewRef.name": "other"}, "spec.reviewRef is immutable", "an issue is of one review"},
	{"issue seen in one more commit", issue, nil, edit{"spec.seenInCommits": []any{"abc", "def"}}, "", "the next commit shows it too"},
	{"issue without a review", issue, nil, edit{"spec.reviewRef": nil}, "spec.reviewRef: Required", "taken away, it could be added anew with another value"},
	{"issue without a spec", issue, nil, edit{"spec": nil}, "spec: Required", "with the spec every rule in it would go"},
	{"key without its last scope", key, edit{"spec.scopes": []any{"findings:import"}}, edit{"spec.scopes": []any{}}, "at least 1 item", "it would have five"},
	{"key without its list of scopes", key, edit{"spec.scopes": []any{"findings:import"}}, edit{"spec.scopes": nil}, "must not be removed", "it would have five"},
	{"key without its list of scopes and its spec", key, edit{"spec.scopes": []any{"findings:import"}}, edit{"spec": nil}, "must not be removed", "with the spec every rule in it would go"},
	{"key whose scopes are listed", key, nil, edit{"spec.scopes": []any{"findings:import"}}, "", "it had the five before"},
	{"endpoint without its last event", endpoint, edit{"spec.events": []any{"finding.*"}}, edit{"spec.events": []any{}}, "at least 1 item", "it would get all"},
	{"operation on others", operation, nil, edit{"spec.select.rule": "G2"}, "select, set and undo are immutable", "somebody has seen what it does"},
	{"operation that decides otherwise", operation, edit{"spec.commit": true}, edit{"spec.set.userStatus": "active"}, "select, set and undo are immutable", "somebody has seen what it does"},
	{"operation that undoes instead", operation, edit{"spec.commit": true}, edit{"spec": map[string]any{"undo": "x", "commit": true}}, "select, set and undo are immutable", "somebody has seen what it does"},
	{"operation that is committed", operation, nil, edit{"spec.commit": true}, "", "after its preview"},
	{"operation that is not committed after all", operation, edit{"spec.commit": true}, edit{"spec.commit": nil}, "what is committed stays so", "it may have been done"},
	{"delivery of another payload", delivery, nil, edit{"spec.payload": "{ }"}, "spec is immutable", "the bytes that were sent"},
	{"delivery without a payload", delivery, nil, edit{"spec.payload": nil}, "spec.payload: Required", "taken away, it could be added anew with another value"},
	{"delivery without a spec", delivery, nil, edit{"spec": nil}, "spec: Required", "with the spec every rule in it would go"},
}

// An empty filter in an operation would be no filter: the operation would decide about every finding.
func TestAnEmptyFilterOfAnOperationIsRefused(t *testing.T) {
	selection := reflect.TypeFor[v1alpha1.FindingSelection]()
	schema := schemaOf(t, crds(t)["TriageOperation"]).Properties["spec"].Properties["select"]
	for i := range selection.NumField() {
		name, _, _ := strings.Cut(selection.Field(i).Tag.Get("json"), ",")
		if !strings.Contains(schema.XValidations[0].Rule, "has(self."+name+")") {
			t.Errorf("beside ids, the filter %s would be ignored: add has(self.%[1]s) to the rule above FindingSelection", name)
		}
		var empty any
		switch kind := selection.Field(i).Type; {
		case kind.Kind() == reflect.Slice:
			empty = []any{}
		case kind.Kind() == reflect.String || kind == reflect.TypeFor[*v1alpha1.Time]():
			empty = ""
		default:
			continue // a bool is always meaningful, and so is an empty class: findings without a class
		}
		object := content(t, operation())
		edit{"spec.select": map[string]any{"stale": true, name: empty}}.apply(object.Object)
		wantAnswer(t, env.Client.Create(t.Context(), object, client.DryRunAll), "spec.select."+name,
			"a variable that is not set must not widen a write: add MinLength=1 or MinItems=1 to the field")
	}
}

func TestRulesAtUpdate(t *testing.T) {
	acceptAllKinds(t)
	for _, row := range rulesAtUpdate {
		t.Run(row.name, func(t *testing.T) {
			object := content(t, row.object())
			row.before.apply(object.Object)
			env.Create(t, object)
			t.Cleanup(func() {
				harness.NoError(t, "clean up", env.Client.Delete(context.WithoutCancel(t.Context()), object))
			})
			changed := object.DeepCopy()
			row.edit.apply(changed.Object)
			wantAnswer(t, env.Client.Update(t.Context(), changed, client.DryRunAll), row.refused, row.reason)
		})
	}
}

func wantAnswer(t *testing.T, err error, refused, reason string) {
	t.Helper()
	switch {
	case refused == "" && err != nil:
		t.Errorf("refused: %v\nreason it must be taken: %s", err, reason)
	case refused != "" && (err == nil || !strings.Contains(err.Error(), refused)):
		t.Errorf("want a refusal that says %q, got %v\nreason: %s", refused, err, reason)
	}
}

// What an earlier version stored stays writable.
func TestWhatARuleWouldRefuseStaysWritable(t *testing.T) {
	acceptAllKinds(t)
	for path, tc := range map[string]struct {
		object func() client.Object
		stored any
		other  edit
	}{
		"spec.url":             {repository, "https://u:p@example.com/a", edit{"spec.summary": "other"}},
		"spec.cloneURL":        {repository, "https://ghp_x@github.com/a/b.git", edit{"spec.summary": "other"}},
		"spec.lastCommit.link": {repository, "https://ghp_x@github.com/a/b/commit", edit{"spec.lastCommit.hash": "other"}},
		"spec.relativePath":    {project, "../billing", edit{"spec.owner": "other"}},
		"spec.scopes":          {key, []any{}, edit{"spec.disabled": true}},
		"spec.events":          {endpoint, []any{}, edit{"spec.disabled": true}},
	} {
		object := content(t, tc.object())
		object.SetName("before-" + strings.ToLower(path[len("spec."):]))
		env.Create(t, object)
		live := env.Stored(t, object)
		edit{path: tc.stored}.apply(live.Object)
		harness.Must(t, env.PutIntoEtcd(t.Context(), kube.Resource(live.GetKind()), "default", live.GetName(), harness.JSON(t, live)))
		live = env.Stored(t, live)
		tc.other.apply(live.Object)
		harness.NoError(t, path+": another field", env.Client.Update(t.Context(), live))
		edit{"status.observedGeneration": int64(1)}.apply(live.Object)
		harness.NoError(t, path+": the status", controller(t).Status().Update(t.Context(), live))
		text, is := tc.stored.(string)
		if !is { // no other list is empty
			edit{path: nil}.apply(live.Object)
			harness.NoError(t, path+": without the list", env.Client.Update(t.Context(), live))
			continue
		}
		edit{path: text + "/c"}.apply(live.Object)
		if err := env.Client.Update(t.Context(), live, client.DryRunAll); !apierrors.IsInvalid(err) {
			t.Errorf("%s: another such value: %v", path, err)
		}
	}
}

// Without a case above, a rule could be lost unnoticed.
func TestEveryRuleRefusesSomethingInATable(t *testing.T) {
	for kind, crd := range crds(t) {
		for _, rule := range rules(schemaOf(t, crd)) {
			if strings.HasPrefix(rule.Rule, "timestamp(self.") {
				continue // every time has this rule, and TestEachBoundIsKeptAndTheErrorNamesTheField covers each
			}
			if !slices.ContainsFunc(refusals(t)[kind], func(refused string) bool { return strings.Contains(rule.Message, refused) }) {
				t.Errorf("%s: no case in rulesAtCreate or rulesAtUpdate is refused with %q", kind, rule.Message)
			}
		}
	}
}

// refusals returns the messages that the tables expect, by kind.
func refusals(t *testing.T) map[string][]string {
	out := map[string][]string{}
	add := func(object func() client.Object, refused string) {
		if refused != "" {
			kind := content(t, object()).GetKind()
			out[kind] = append(out[kind], refused)
		}
	}
	for _, row := range rulesAtCreate {
		add(row.object, row.refused)
	}
	for _, row := range rulesAtUpdate {
		add(row.object, row.refused)
	}
	return out
}

func rules(schema *apiextensionsv1.JSONSchemaProps) []apiextensionsv1.ValidationRule {
	out := slices.Clone([]apiextensionsv1.ValidationRule(schema.XValidations))
	for _, member := range schema.Properties {
		out = append(out, rules(&member)...)
	}
	if schema.Items != nil {
		out = append(out, rules(schema.Items.Schema)...)
	}
	if schema.AdditionalProperties != nil {
		out = append(out, rules(schema.AdditionalProperties.Schema)...)
	}
	return out
}
