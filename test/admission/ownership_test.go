package admission_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
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

// besideWeb returns a project to which no file in the folder web belongs.
func besideWeb(name string) client.Object {
	project := projectOf(name)
	project.SetAnnotations(map[string]string{v1alpha1.BesideAnnotation: "web"})
	return project
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
	{"mute a finding", findingOpen, triage(map[string]any{"userStatus": "muted"}), []who{triager, admin}, "people decide; the facade must say which key asked"},
	{"mute a finding for an API key", findingOpen, triage(map[string]any{"userStatus": "muted", "by": "apikey/ci"}), []who{triager, admin, facade}, "the facade decides for the holder of a key"},
	{"comment a finding", findingOpen, triage(map[string]any{"comments": "looking into it"}), []who{triager, admin}, "a comment is part of the decision"},
	{"comment a finding for an API key", findingMuted, triage(map[string]any{"comments": "", "by": "apikey/ci"}), []who{triager, admin, facade}, "the facade empties a comment by writing the empty string"},
	{"reopen a muted finding", findingMuted, triage(map[string]any{"userStatus": "open", "comments": ""}), []who{triager, admin}, "going back to the default is a decision too"},
	{"take a finding's triage away", findingMuted, fragment{"spec": map[string]any{"triage": nil}}, []who{triager, admin}, "the default that comes back is a change"},
	{"take a finding's comment away", findingMuted, triage(map[string]any{"comments": nil}), []who{triager, admin}, "removing is changing"},
	{"raise a finding's severity", entitled(findingMuted), fragment{"spec": map[string]any{"details": severe}}, []who{scanner, uploads, reporter, admin}, "facts are the scanner's"},
	{"close a finding", findingMuted, fragment{"spec": map[string]any{"closed": map[string]any{"at": "2026-01-02T03:04:05Z"}}}, []who{scanner, uploads, reporter, admin}, "a fact that was absent is a fact"},
	{"forget a finding's tool", func(name string) client.Object {
		return builder.Finding(name).Tool("gosec", v1alpha1.CategoryCode).Build()
	}, fragment{"spec": map[string]any{"tool": nil}}, []who{scanner, uploads, reporter, admin}, "a fact taken away is a fact changed"},
	{"change fact and decision in one request", entitled(findingOpen), fragment{"spec": map[string]any{"details": severe, "triage": map[string]any{"userStatus": "muted", "by": "apikey/ci"}}}, []who{admin}, "one half that is allowed must not carry the other"},
	{"label a finding", findingOpen, label, []who{scanner, uploads, triager, admin, editor, reporter}, "labels say nothing of who decided; the facade has no business with them"},
	{"put a finalizer on a finding", findingOpen, finalizer, []who{admin}, "a finalizer keeps others from deleting"},
	{"give a finding an owner that does not exist", findingOpen, ownerReference, []who{admin}, "the garbage collector would delete the finding"},
	{"correct a project's exposure", projectOf, fragment{"spec": map[string]any{"user": map[string]any{"exposure": "public"}}}, []who{triager, admin}, "spec.user is what people say"},
	{"take away what people say of a project", projectOf, fragment{"spec": map[string]any{"user": nil}}, []who{triager, admin}, "removing is changing"},
	{"say what a scanner says of a project", projectOf, fragment{"spec": map[string]any{"scanner": map[string]any{"exposure": "public"}}}, []who{reporter, admin}, "spec.scanner is no person's; the scanner role only reads projects"},
	{"rename a project", projectOf, fragment{"spec": map[string]any{"displayName": "other"}}, []who{reporter, admin}, "the triager changes spec.user and nothing else of a project"},
	{"move folders out of a project", besideWeb, metadata(map[string]any{"annotations": map[string]any{v1alpha1.BesideAnnotation: "web\nservices/*"}}), []who{reporter, admin}, "imports would create a project for them, and its findings would be undecided"},
	{"put a finalizer on a project", projectOf, finalizer, []who{controller, admin}, "the controller removes a project's findings before the project goes"},
	{"describe a repository", repositoryOf, fragment{"spec": map[string]any{"description": "other"}}, []who{reporter, admin}, "the whole spec of a repository is facts"},
	{"put a finalizer on a repository", repositoryOf, finalizer, []who{controller, admin}, "the controller removes a repository's children before the repository goes"},
	{"end a scan", scanOf, fragment{"spec": map[string]any{"completedAt": "2026-01-02T03:04:05Z", "outcome": "Succeeded"}}, []who{scanner, uploads, reporter, admin}, "the importer says how a scan ended"},
	{"merge a pull request", reviewOf, fragment{"spec": map[string]any{"prStatus": "merged"}}, []who{scanner, uploads, reporter, admin}, "the reviewer says what became of the pull request"},
	{"forget the commits of a review", func(name string) client.Object { return builder.Review(name).Reviewed("abc", start).Build() }, fragment{"spec": map[string]any{"reviewedCommits": nil}}, []who{scanner, uploads, reporter, admin}, "whoever takes a commit away opens what it has resolved"},
	{"put a finalizer on a review", reviewOf, finalizer, []who{controller, admin}, "the controller removes a review's issues before the review goes"},
	{"make an issue of a review less severe", issueOf, fragment{"spec": map[string]any{"severity": "medium"}}, []who{scanner, uploads, reporter, admin}, "what a review found is a fact"},
	{"mute an issue of a review", issueOf, triage(map[string]any{"userStatus": "muted"}), []who{triager, admin}, "people decide in pull requests too"},
	{"mute an issue of a review for an API key", issueOf, triage(map[string]any{"userStatus": "muted", "by": "apikey/ci"}), []who{triager, admin, facade}, "the facade decides for the holder of a key"},
	{"change fact and decision of an issue for an API key", issueOf, fragment{"spec": map[string]any{"title": "Another", "triage": map[string]any{"userStatus": "muted", "by": "apikey/ci"}}}, []who{admin}, "the facade writes no fact"},
	{"label an issue of a review", issueOf, label, []who{scanner, uploads, triager, admin, editor, reporter}, "labels say nothing of who decided; the facade has no business with them"},
	{"reopen a muted issue", issueMuted, triage(map[string]any{"userStatus": "open", "comments": ""}), []who{triager, admin}, "going back to the default is a decision too"},
	{"take an issue's triage away", issueMuted, fragment{"spec": map[string]any{"triage": nil}}, []who{triager, admin}, "whoever takes it away reopens the issue"},
	{"change fact and decision of an issue in one request", issueOf, fragment{"spec": map[string]any{"severity": "medium", "triage": map[string]any{"userStatus": "muted"}}}, []who{admin}, "each part has its own writer"},
	{"see an issue nowhere", issueOf, fragment{"spec": map[string]any{"seenInCommits": nil}}, []who{scanner, uploads, reporter, admin}, "whoever takes a commit away resolves the issue"},
	{"put a finalizer on an issue", issueOf, finalizer, []who{admin}, "a finalizer keeps the review from going"},
	{"send events elsewhere", endpointOf, fragment{"spec": map[string]any{"url": "https://elsewhere.invalid"}}, []who{admin, editor, reporter}, "no writer's part to guard here: RBAC decides"},
	{"label a delivery", deliveryOf, label, []who{admin, editor, reporter, triager}, "triagers ask for a redelivery by an annotation; what is sent is immutable"},
	{"give a delivery an owner that does not exist", deliveryOf, ownerReference, []who{admin}, "the right to ask for a redelivery permits no other change"},
	{"disable an API key", keyOf, fragment{"spec": map[string]any{"disabled": true}}, []who{admin, editor, reporter}, "no writer's part to guard here: RBAC decides"},
}

func TestOnlyTheOwnerChangesAPartOfASpec(t *testing.T) {
	c, next := newCast(t, "ownership"), nextName()
	for _, row := range changes {
		c.everyoneTries(t, row, next, "", func(name who, form form) bool {
			return slices.Contains(row.allowed, name) && (form.verb != "update" || !slices.Contains(cannotUpdate, name))
		})
	}
}

// everyoneTries has every requester request the change of a row in every form, and checks each answer and what is
// stored afterwards. A refused request leaves the object as it is for the next one.
func (c *cast) everyoneTries(t *testing.T, row change, next func() string, at string, allowed func(who, form) bool) {
	t.Helper()
	var before *unstructured.Unstructured
	for _, name := range everyone {
		for _, form := range forms {
			if form.name == "forced apply" && hasNull(row.change) {
				continue // an apply cannot remove a field that its manager does not own
			}
			t.Run(fmt.Sprintf("%s/%s/%s", row.name, name, form.name), func(t *testing.T) {
				if before == nil {
					before = applied(t, in(c.namespace, row.object(next())))
				}
				err := form.send(t, c.as(name), before, row.change, at)
				after := env.Stored(t, before)
				if wantAnswer(t, err, allowed(name, form), row.reason); err == nil {
					wantChange(t, before, after, c.members[name].username, row)
					before = nil
					return
				}
				harness.Same(t, "the object after a refused request ("+row.reason+")", content(before), content(after))
			})
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
	harness.Same(t, "what is stored, compared with what was asked for ("+row.reason+")", content(wanted), content(after))
}

func set(t *testing.T, object *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	harness.Must(t, unstructured.SetNestedField(object.Object, value, path...))
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
