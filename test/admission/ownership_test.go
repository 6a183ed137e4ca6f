package admission_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
)

// cannotUpdate are the requesters whose role has patch but not update.
var cannotUpdate = []who{scanner, uploads, facade, controller}

// change is a row of the table: every requester attempts it in every form, and only those in
// allowed succeed.
type change struct {
	name    string
	object  func(name string) client.Object
	change  fragment
	allowed []who
	reason  string
}

func findingOpen(name string) client.Object { return builder.Finding(name).Build() }

func findingMuted(name string) client.Object {
	return builder.Finding(name).Triage(v1alpha1.UserStatusMuted, "not reachable").Build()
}

// severe are details of high severity. They have one owner as a whole: an apply contains all of
// them.
var severe = map[string]any{"title": "A finding", "severity": "high"}

// entitled returns a finding with that title.
func entitled(object func(string) client.Object) func(string) client.Object {
	return func(name string) client.Object {
		finding := object(name).(*v1alpha1.Finding)
		finding.Spec.Details.Title = severe["title"].(string)
		return finding
	}
}

func projectOf(name string) client.Object {
	return builder.Project(name).User(v1alpha1.ProjectAssessment{Exposure: "internal"}).Build()
}

func repositoryOf(name string) client.Object { return builder.Repository(name).Build() }

func scanOf(name string) client.Object { return builder.Scan(name, start).Build() }

func reviewOf(name string) client.Object { return builder.Review(name).Build() }

func issueOf(name string) client.Object { return builder.ReviewIssue(name).SeenIn("abc").Build() }

func issueMuted(name string) client.Object {
	return builder.ReviewIssue(name).SeenIn("abc").Mutate(func(i *v1alpha1.ReviewIssue) {
		i.Spec.Triage = v1alpha1.ReviewIssueTriage{UserStatus: v1alpha1.UserStatusMuted, Comments: "not reachable"}
	}).Build()
}

func endpointOf(name string) client.Object { return builder.WebhookEndpoint(name).Build() }

func deliveryOf(name string) client.Object { return builder.WebhookDelivery(name, start).Build() }

func keyOf(name string) client.Object { return builder.APIKey(name).Build() }

func triage(members map[string]any) fragment {
	return fragment{"spec": map[string]any{"triage": members}}
}

func metadata(members map[string]any) fragment { return fragment{"metadata": members} }

var (
	finalizer      = metadata(map[string]any{"finalizers": []any{"appsec.dev/cleanup"}})
	ownerReference = metadata(map[string]any{"ownerReferences": []any{map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "00000000-0000-0000-0000-000000000000",
	}}})
	label = metadata(map[string]any{"labels": map[string]any{"team": "payments"}})
)

var changes = []change{
	{
		name: "mute a finding", object: findingOpen,
		change:  triage(map[string]any{"userStatus": "muted"}),
		allowed: []who{triager, admin},
		reason:  "people decide; the facade must say which key asked",
	},
	{
		name: "mute a finding for an API key", object: findingOpen,
		change:  triage(map[string]any{"userStatus": "muted", "by": "apikey/ci"}),
		allowed: []who{triager, admin, facade},
		reason:  "the facade decides for the holder of a key",
	},
	{
		name: "comment a finding", object: findingOpen,
		change:  triage(map[string]any{"comments": "looking into it"}),
		allowed: []who{triager, admin},
		reason:  "a comment is part of the decision",
	},
	{
		name: "comment a finding for an API key", object: findingMuted,
		change:  triage(map[string]any{"comments": "", "by": "apikey/ci"}),
		allowed: []who{triager, admin, facade},
		reason:  "the facade empties a comment by writing the empty string",
	},
	{
		name: "reopen a muted finding", object: findingMuted,
		change:  triage(map[string]any{"userStatus": "open", "comments": ""}),
		allowed: []who{triager, admin},
		reason:  "going back to the default is a decision too",
	},
	{
		name: "take a finding's triage away", object: findingMuted,
		change:  fragment{"spec": map[string]any{"triage": nil}},
		allowed: []who{triager, admin},
		reason:  "the default that comes back is a change",
	},
	{
		name: "take a finding's comment away", object: findingMuted,
		change:  triage(map[string]any{"comments": nil}),
		allowed: []who{triager, admin},
		reason:  "removing is changing",
	},
	{
		name: "raise a finding's severity", object: entitled(findingMuted),
		change:  fragment{"spec": map[string]any{"details": severe}},
		allowed: []who{scanner, uploads, reporter, admin},
		reason:  "facts are the scanner's",
	},
	{
		name: "close a finding", object: findingMuted,
		change:  fragment{"spec": map[string]any{"closed": map[string]any{"at": "2026-01-02T03:04:05Z"}}},
		allowed: []who{scanner, uploads, reporter, admin},
		reason:  "a fact that was absent is a fact",
	},
	{
		name: "forget a finding's tool",
		object: func(name string) client.Object {
			return builder.Finding(name).Tool("gosec", v1alpha1.CategoryCode).Build()
		},
		change:  fragment{"spec": map[string]any{"tool": nil}},
		allowed: []who{scanner, uploads, reporter, admin},
		reason:  "a fact taken away is a fact changed",
	},
	{
		name: "change fact and decision in one request", object: entitled(findingOpen),
		change: fragment{"spec": map[string]any{
			"details": severe, "triage": map[string]any{"userStatus": "muted", "by": "apikey/ci"},
		}},
		allowed: []who{admin},
		reason:  "one half that is allowed must not carry the other",
	},
	{
		name: "label a finding", object: findingOpen, change: label,
		allowed: []who{scanner, uploads, triager, admin, editor, reporter},
		reason:  "labels say nothing of who decided; the facade has no business with them",
	},
	{
		name: "put a finalizer on a finding", object: findingOpen, change: finalizer,
		allowed: []who{admin},
		reason:  "a finalizer keeps others from deleting",
	},
	{
		name: "give a finding an owner that is not there", object: findingOpen, change: ownerReference,
		allowed: []who{admin},
		reason:  "the garbage collector would delete the finding",
	},
	{
		name: "correct a project's exposure", object: projectOf,
		change:  fragment{"spec": map[string]any{"user": map[string]any{"exposure": "public"}}},
		allowed: []who{triager, admin},
		reason:  "spec.user is what people say",
	},
	{
		name: "take away what people say of a project", object: projectOf,
		change:  fragment{"spec": map[string]any{"user": nil}},
		allowed: []who{triager, admin},
		reason:  "removing is changing",
	},
	{
		name: "say what a scanner says of a project", object: projectOf,
		change:  fragment{"spec": map[string]any{"scanner": map[string]any{"exposure": "public"}}},
		allowed: []who{reporter, admin},
		reason:  "spec.scanner is no person's; the scanner role only reads projects",
	},
	{
		name: "rename a project", object: projectOf,
		change:  fragment{"spec": map[string]any{"displayName": "other"}},
		allowed: []who{reporter, admin},
		reason:  "the triager changes spec.user and nothing else of a project",
	},
	{
		name: "put a finalizer on a project", object: projectOf, change: finalizer,
		allowed: []who{controller, admin},
		reason:  "the controller removes a project's findings before the project goes",
	},
	{
		name: "describe a repository", object: repositoryOf,
		change:  fragment{"spec": map[string]any{"description": "other"}},
		allowed: []who{reporter, admin},
		reason:  "the whole spec of a repository is facts",
	},
	{
		name: "put a finalizer on a repository", object: repositoryOf, change: finalizer,
		allowed: []who{controller, admin},
		reason:  "the controller removes a repository's children before the repository goes",
	},
	{
		name: "end a scan", object: scanOf,
		change:  fragment{"spec": map[string]any{"completedAt": "2026-01-02T03:04:05Z", "outcome": "Succeeded"}},
		allowed: []who{scanner, uploads, reporter, admin},
		reason:  "the importer says how a scan ended",
	},
	{
		name: "merge a pull request", object: reviewOf,
		change:  fragment{"spec": map[string]any{"prStatus": "merged"}},
		allowed: []who{scanner, uploads, reporter, admin},
		reason:  "the reviewer says what became of the pull request",
	},
	{
		name: "forget the commits of a review",
		object: func(name string) client.Object {
			return builder.Review(name).Reviewed("abc", start).Build()
		},
		change:  fragment{"spec": map[string]any{"reviewedCommits": nil}},
		allowed: []who{scanner, uploads, reporter, admin},
		reason:  "whoever takes a commit away opens what it has resolved",
	},
	{
		name: "put a finalizer on a review", object: reviewOf, change: finalizer,
		allowed: []who{controller, admin},
		reason:  "the controller removes a review's issues before the review goes",
	},
	{
		name: "make an issue of a review less severe", object: issueOf,
		change:  fragment{"spec": map[string]any{"severity": "medium"}},
		allowed: []who{scanner, uploads, reporter, admin},
		reason:  "what a review found is a fact",
	},
	{
		name: "mute an issue of a review", object: issueOf,
		change:  triage(map[string]any{"userStatus": "muted"}),
		allowed: []who{triager, admin},
		reason:  "people decide in pull requests too",
	},
	{
		name: "mute an issue of a review for an API key", object: issueOf,
		change:  triage(map[string]any{"userStatus": "muted", "by": "apikey/ci"}),
		allowed: []who{triager, admin, facade},
		reason:  "the facade decides for the holder of a key",
	},
	{
		name: "change fact and decision of an issue for an API key", object: issueOf,
		change:  fragment{"spec": map[string]any{"title": "Another", "triage": map[string]any{"userStatus": "muted", "by": "apikey/ci"}}},
		allowed: []who{admin},
		reason:  "the facade writes no fact",
	},
	{
		name: "label an issue of a review", object: issueOf, change: label,
		allowed: []who{scanner, uploads, triager, admin, editor, reporter},
		reason:  "labels say nothing of who decided; the facade has no business with them",
	},
	{
		name: "reopen a muted issue", object: issueMuted,
		change:  triage(map[string]any{"userStatus": "open", "comments": ""}),
		allowed: []who{triager, admin},
		reason:  "going back to the default is a decision too",
	},
	{
		name: "take an issue's triage away", object: issueMuted,
		change:  fragment{"spec": map[string]any{"triage": nil}},
		allowed: []who{triager, admin},
		reason:  "whoever takes it away reopens the issue",
	},
	{
		name: "change fact and decision of an issue in one request", object: issueOf,
		change:  fragment{"spec": map[string]any{"severity": "medium", "triage": map[string]any{"userStatus": "muted"}}},
		allowed: []who{admin},
		reason:  "each part has its own writer",
	},
	{
		name: "see an issue nowhere", object: issueOf,
		change:  fragment{"spec": map[string]any{"seenInCommits": nil}},
		allowed: []who{scanner, uploads, reporter, admin},
		reason:  "whoever takes a commit away resolves the issue",
	},
	{
		name: "put a finalizer on an issue", object: issueOf, change: finalizer,
		allowed: []who{admin},
		reason:  "a finalizer keeps the review from going",
	},
	{
		name: "send events elsewhere", object: endpointOf,
		change:  fragment{"spec": map[string]any{"url": "https://elsewhere.invalid"}},
		allowed: []who{admin, editor, reporter},
		reason:  "no writer's part to guard here: RBAC decides",
	},
	{
		name: "label a delivery", object: deliveryOf, change: label,
		allowed: []who{admin, editor, reporter, triager},
		reason:  "triagers ask for a redelivery by an annotation; what is sent is immutable",
	},
	{
		name: "disable an API key", object: keyOf,
		change:  fragment{"spec": map[string]any{"disabled": true}},
		allowed: []who{admin, editor, reporter},
		reason:  "no writer's part to guard here: RBAC decides",
	},
}

func TestOnlyTheOwnerChangesAPartOfASpec(t *testing.T) {
	c := newCast(t, "ownership")
	next := nextName()
	for _, row := range changes {
		t.Run(row.name, func(t *testing.T) {
			for _, name := range everyone {
				for _, form := range forms {
					if form.apply && hasNull(row.change) && form.name == "forced apply" {
						continue // an apply cannot remove a field that its manager does not own
					}
					t.Run(fmt.Sprintf("%s/%s", name, form.name), func(t *testing.T) {
						allowed := slices.Contains(row.allowed, name) &&
							(form.verb != "update" || !slices.Contains(cannotUpdate, name))
						tryChange(t, c, row, next(), name, form, "", allowed)
					})
				}
			}
		})
	}
}

// tryChange requests the change and checks the answer and the stored object.
func tryChange(t *testing.T, c *cast, row change, object string, name who, form form, at string, allowed bool) {
	t.Helper()
	fixture := row.object(object)
	fixture.SetNamespace(c.namespace)
	before := applied(t.Context(), t, fixture)
	err := form.send(t.Context(), t, c.as(name), before, row.change, at)
	after := read(t.Context(), t, before)
	switch {
	case allowed && err != nil:
		t.Errorf("refused: %v\nreason it must be allowed: %s", err, row.reason)
	case allowed:
		wantChange(t, before, after, c.members[name].username, row)
	case !isRefusal(err):
		t.Errorf("want a refusal, got error %v\nreason it must be refused: %s", err, row.reason)
	}
	if !allowed {
		if diff := cmp.Diff(content(before), content(after)); diff != "" {
			t.Errorf("a refused request changed the object (-before +after):\n%s\nreason: %s", diff, row.reason)
		}
	}
}

// wantChange checks that the requested change is stored, and signed by the requester if it is a decision.
// The basis is tested in basis_test.go.
func wantChange(t *testing.T, before, after *unstructured.Unstructured, username string, row change) {
	t.Helper()
	wanted, after := row.change.onto(t, before), after.DeepCopy()
	unstructured.RemoveNestedField(wanted.Object, "spec", "triage", "basis")
	unstructured.RemoveNestedField(after.Object, "spec", "triage", "basis")
	if kind := wanted.GetKind(); kind == "Finding" || kind == "ReviewIssue" {
		if _, found, _ := unstructured.NestedString(wanted.Object, "spec", "triage", "userStatus"); !found {
			set(t, wanted, "open", "spec", "triage", "userStatus")
		}
		if decision(before) != decision(wanted) && !strings.HasSuffix(username, ":findings-api") {
			set(t, wanted, username, "spec", "triage", "by")
		}
	}
	if diff := cmp.Diff(content(wanted), content(after)); diff != "" {
		t.Errorf("stored is not what was asked for (-asked +stored):\n%s\nreason: %s", diff, row.reason)
	}
}

func set(t *testing.T, object *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
		t.Fatal(err)
	}
}

func decision(object *unstructured.Unstructured) [2]string {
	status, _, _ := unstructured.NestedString(object.Object, "spec", "triage", "userStatus")
	comments, _, _ := unstructured.NestedString(object.Object, "spec", "triage", "comments")
	return [2]string{status, comments}
}

// content returns what requesters may change: everything except what the API server maintains.
func content(object *unstructured.Unstructured) map[string]any {
	out := object.DeepCopy()
	for _, member := range []string{"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid"} {
		unstructured.RemoveNestedField(out.Object, "metadata", member)
	}
	return out.Object
}
