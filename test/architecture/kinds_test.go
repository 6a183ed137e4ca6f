package architecture

import (
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// everyKind returns this project's kinds by their names.
func everyKind(t *testing.T) map[string]kube.Kind {
	t.Helper()
	scheme := runtime.NewScheme()
	harness.Must(t, v1alpha1.AddToScheme(scheme))
	every := map[string]kube.Kind{}
	for name, of := range scheme.KnownTypes(v1alpha1.GroupVersion) {
		if kind, ok := kube.KindOf(reflect.New(of).Interface()); ok {
			every[name] = kind
		}
	}
	return every
}

// Kubernetes adds the rights of view to edit.
func TestPeopleReadEveryKindOfAnOrganization(t *testing.T) {
	for file, roles := range map[string][]string{
		"viewer.yaml": {"findings-viewer"}, "triager.yaml": {"findings-triager"}, "admin.yaml": {"findings-admin"},
		"aggregate.yaml": {"findings-aggregate-to-view", "findings-aggregate-to-edit"},
	} {
		var rules []rbacv1.PolicyRule
		for document := range strings.SplitSeq(harness.RepositoryFile(t, "config", "rbac", file), "\n---\n") {
			role := &rbacv1.ClusterRole{}
			harness.Must(t, yaml.Unmarshal([]byte(document), role))
			if slices.Contains(roles, role.Name) {
				rules = append(rules, role.Rules...)
			}
		}
		for name, kind := range everyKind(t) {
			for _, verb := range []string{"get", "list", "watch"} {
				grants := func(rule rbacv1.PolicyRule) bool {
					return slices.Contains(rule.APIGroups, v1alpha1.GroupName) &&
						slices.Contains(rule.Resources, kind.Resource) && slices.Contains(rule.Verbs, verb)
				}
				if name != "Organization" && !slices.ContainsFunc(rules, grants) {
					t.Errorf("config/rbac/%s: grant the verb %s on %s", file, verb, kind.Resource)
				}
			}
		}
	}
}

// stays holds kinds that refer to a parent whose controller does not remove them.
var stays = map[string]string{
	"FindingTrend":    "the garbage collector removes it with its project",
	"WebhookDelivery": "it is kept after its endpoint is deleted",
}

// text matches what the policy's message names of a kind's children.
var text = regexp.MustCompile(`'(\w+)': '([^']+)'`)

func TestWhatBelongsToAParentIsRemovedAndNamedWhenOrphaned(t *testing.T) {
	content, _, _ := strings.Cut(harness.RepositoryFile(t, "config", "admission", "orphans.yaml"), "\n---\n")
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	harness.Must(t, yaml.Unmarshal([]byte(content), policy))
	texts := map[string]string{}
	for _, match := range text.FindAllStringSubmatch(policy.Spec.Validations[0].MessageExpression, -1) {
		texts[match[1]] = match[2]
	}
	for _, resource := range policy.Spec.MatchConstraints.ResourceRules[0].Resources {
		if texts[resource] == "" {
			t.Errorf("config/admission/orphans.yaml: messageExpression does not name the children of %s", resource)
		}
	}
	every, pairs := everyKind(t), 0
	for name, child := range every {
		for of, parent := range every {
			if stays[name] != "" || !refersTo(child, of) {
				continue
			}
			pairs++
			// The text names the issues of a review, not its reviewissues.
			if called := strings.TrimPrefix(child.Resource, strings.ToLower(of)); !strings.Contains(texts[parent.Resource], called) {
				t.Errorf("config/admission/orphans.yaml: messageExpression must name %s as children of %s", called, parent.Resource)
			}
			plan := path.Join("controllers", strings.ToLower(of), "removal.go")
			if !strings.Contains(harness.RepositoryFile(t, plan), "&v1alpha1."+name+"{}") {
				t.Errorf("%s: add %s to the plan", plan, name)
			}
		}
	}
	if pairs < 7 {
		t.Errorf("found %d kinds that belong to a parent; did the names of references change?", pairs)
	}
}

// refersTo reports whether the spec has a reference to an object of the other kind, such as projectRef.
func refersTo(kind kube.Kind, other string) bool {
	spec, _ := reflect.TypeOf(kind.New()).Elem().FieldByName("Spec")
	reference, found := spec.Type.FieldByName(other + "Ref")
	return found && reference.Type.Name() == other+"Reference"
}
