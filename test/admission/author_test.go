package admission_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// decided creates a finding that the triager has muted, and returns it as stored.
func decided(t *testing.T, c *cast, name string) *unstructured.Unstructured {
	t.Helper()
	finding := builder.Finding(name).In(c.namespace).Build()
	live := applied(t, finding)
	muted := triage(map[string]any{"userStatus": "muted", "comments": "accepted"})
	harness.Must(t, sendMergePatch(t, c.as(triager), live, muted, ""))
	live = env.Stored(t, live)
	wantTriage(t, live, map[string]any{"userStatus": "muted", "comments": "accepted", "by": c.members[triager].username})
	return live
}

// wantTriage compares the triage except for the basis, which the tests in basis_test.go compare.
func wantTriage(t *testing.T, object *unstructured.Unstructured, want map[string]any) {
	t.Helper()
	got, _, _ := unstructured.NestedMap(object.Object, "spec", "triage")
	delete(got, "basis")
	harness.Same(t, "spec.triage", want, got)
}

func TestAForgedSignatureAloneChangesNothing(t *testing.T) {
	c := newCast(t, "forged-alone")
	next := nextName()
	forged := triage(map[string]any{"by": "system:admin"})
	for _, name := range []who{triager, admin, scanner, reporter, editor, facade} {
		for _, form := range forms {
			if form.verb == "update" && slices.Contains(cannotUpdate, name) {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s", name, form.name), func(t *testing.T) {
				before := decided(t, c, next())
				err := form.send(t, c.as(name), before, forged, "")
				if name == facade && !apierrors.IsForbidden(err) {
					t.Errorf("the facade signs for itself, and not without a decision: want a refusal, got %v", err)
				}
				if name != facade && err != nil {
					t.Errorf("want the old signature put back in silence, got %v", err)
				}
				harness.Same(t, "the object", content(before), content(env.Stored(t, before)))
			})
		}
	}
}

func TestAForgedSignatureOfADecisionIsReplaced(t *testing.T) {
	c := newCast(t, "forged-decision")
	next := nextName()
	for _, name := range []who{triager, admin} {
		for _, form := range forms {
			t.Run(fmt.Sprintf("%s/%s", name, form.name), func(t *testing.T) {
				live := applied(t, builder.Finding(next()).In(c.namespace).Build())
				forged := triage(map[string]any{"userStatus": "active", "by": "apikey/ci"})
				harness.Must(t, form.send(t, c.as(name), live, forged, ""))
				wantTriage(t, env.Stored(t, live), map[string]any{"userStatus": "active", "by": c.members[name].username})
			})
		}
	}
}

func TestASignatureIsNoPartOfACreateWithoutADecision(t *testing.T) {
	c := newCast(t, "forged-create")
	c.join(t, decider, newRole(t, "test-decider", "report", "triage"))
	next := nextName()
	for _, name := range []who{scanner, decider} {
		for how, create := range creations {
			t.Run(fmt.Sprintf("%s/%s", name, how), func(t *testing.T) {
				object := toUnstructured(t, builder.Finding(next()).In(c.namespace).Triage(v1alpha1.UserStatusOpen, "").Build())
				set(t, object, "somebody", "spec", "triage", "by")
				harness.Must(t, create(t, c.as(name), object))
				wantTriage(t, env.Stored(t, object), map[string]any{"userStatus": "open"})
			})
		}
	}
}

func TestADecisionAtCreateIsSigned(t *testing.T) {
	c := newCast(t, "create-decided")
	c.join(t, decider, newRole(t, "test-decider", "report", "triage"))
	object := toUnstructured(t, builder.Finding("f").In(c.namespace).Triage(v1alpha1.UserStatusMuted, "").Build())
	set(t, object, "somebody", "spec", "triage", "by")
	harness.Must(t, c.as(decider).Create(t.Context(), object))
	wantTriage(t, object, map[string]any{"userStatus": "muted", "by": c.members[decider].username})
}

// Otherwise a restore would have the restorer as the author of everybody's decisions.
func TestWhoRestoresABackupCreatesWhatItHoldsWithItsAuthors(t *testing.T) {
	c := newCast(t, "restored")
	c.join(t, restorer, newRole(t, "test-restorer", "report", "triage", "restore"))
	next := nextName()
	for what, row := range map[string]struct {
		object client.Object
		by     []string
	}{
		"finding":              {builder.Finding("f").Triage(v1alpha1.UserStatusMuted, "why").Build(), []string{"spec", "triage", "by"}},
		"finding that is open": {builder.Finding("f").Triage(v1alpha1.UserStatusOpen, "").Build(), []string{"spec", "triage", "by"}},
		"review issue": {builder.ReviewIssue("i").Mutate(func(i *v1alpha1.ReviewIssue) {
			i.Spec.Triage.UserStatus = v1alpha1.UserStatusActive
		}).Build(), []string{"spec", "triage", "by"}},
		"triage policy": {builder.TriagePolicy("p", "true").Build(), []string{"spec", "by"}},
	} {
		for how, create := range creations {
			t.Run(what+"/"+how, func(t *testing.T) {
				object := toUnstructured(t, in(c.namespace, row.object))
				object.SetName(next())
				set(t, object, "ann", row.by...)
				harness.Must(t, create(t, c.as(restorer), object))
				by, _, _ := unstructured.NestedString(env.Stored(t, object).Object, row.by...)
				harness.Same(t, "it is signed by", "ann", by)
			})
		}
	}
	t.Run("without an author", func(t *testing.T) {
		object := toUnstructured(t, builder.Finding("unsigned").In(c.namespace).Triage(v1alpha1.UserStatusMuted, "").Build())
		harness.Must(t, c.as(restorer).Create(t.Context(), object))
		wantTriage(t, object, map[string]any{"userStatus": "muted", "by": c.members[restorer].username})
	})
	t.Run("what exists", func(t *testing.T) {
		live := decided(t, c, "existing")
		again := triage(map[string]any{"userStatus": "active", "by": "ann"})
		harness.Must(t, sendMergePatch(t, c.as(restorer), live, again, ""))
		wantTriage(t, env.Stored(t, live), map[string]any{"userStatus": "active", "comments": "accepted", "by": c.members[restorer].username})
	})
}

func TestTakingTheSignatureAwayPutsItBack(t *testing.T) {
	c := newCast(t, "signature-removed")
	before := decided(t, c, "f")
	for _, name := range []who{triager, admin, scanner} {
		harness.NoError(t, string(name), c.decide(t, name, before, map[string]any{"by": nil}))
	}
	harness.Same(t, "the object", content(before), content(env.Stored(t, before)))
}

func TestTheFacadeSignsForAnAPIKey(t *testing.T) {
	table := []struct {
		by      string
		allowed bool
		reason  string
	}{
		{"apikey/ci", true, "the name of a key"},
		{"apikey/ci.example-1", true, "a name with dots and dashes"},
		{"apikey/" + strings.Repeat("a", 253), true, "the longest name there is"},
		{"", false, "someone must have decided"},
		{"ci", false, "the prefix keeps keys apart from people"},
		{"apikey/", false, "no key has an empty name"},
		{"apikey/CI", false, "no key has a name in capitals"},
		{"xapikey/ci", false, "the prefix must be at the start"},
		{"apikey/ci\nsystem:admin", false, "a second line could be taken for another name"},
		{"system:serviceaccount:findings-system:findings-api", false, "the facade never decides for itself"},
		{"policy/tests", false, "a policy decides by a verdict in the status, and never as a person"},
	}
	c := newCast(t, "facade-signs")
	next := nextName()
	for _, row := range table {
		t.Run(row.by, func(t *testing.T) {
			live := applied(t, builder.Finding(next()).In(c.namespace).Build())
			err := c.decide(t, facade, live, map[string]any{"userStatus": "muted", "by": row.by})
			wantAnswer(t, err, row.allowed, row.reason)
			if row.allowed {
				wantTriage(t, env.Stored(t, live), map[string]any{"userStatus": "muted", "by": row.by})
			} else if err != nil && !strings.Contains(err.Error(), "spec.triage.by must be apikey/") {
				t.Errorf("the refusal does not say what to sign with: %v", err)
			}
		})
	}
}

// A name longer than the field must not make triage impossible.
func TestALongNameIsCutWithAMark(t *testing.T) {
	c := newCast(t, "long-name")
	live := applied(t, builder.Finding("f").In(c.namespace).Build())
	as := env.As(t, env.Impersonate(strings.Repeat("ä", 400), "system:masters"))
	harness.Must(t, sendMergePatch(t, as, live, triage(map[string]any{"userStatus": "muted"}), ""))
	wantTriage(t, env.Stored(t, live), map[string]any{"userStatus": "muted", "by": strings.Repeat("ä", 319) + "…"})
}

// The next decision is signed by the next person.
func TestTheLastToDecideSigns(t *testing.T) {
	c := newCast(t, "last-signs")
	live := decided(t, c, "f")
	facts := triage(map[string]any{"comments": "", "by": "apikey/ci"})
	harness.Must(t, sendMergePatch(t, c.as(facade), live, facts, ""))
	wantTriage(t, env.Stored(t, live), map[string]any{"userStatus": "muted", "comments": "", "by": "apikey/ci"})
	harness.Must(t, c.decide(t, triager, live, map[string]any{"userStatus": "active"}))
	live = env.Stored(t, live)
	wantTriage(t, live, map[string]any{"userStatus": "active", "comments": "", "by": c.members[triager].username})
	version := live.GetResourceVersion()
	harness.Must(t, c.decide(t, admin, live, map[string]any{"userStatus": "active"}))
	harness.Same(t, "resourceVersion after saying the same again", version, env.Stored(t, live).GetResourceVersion())
}
