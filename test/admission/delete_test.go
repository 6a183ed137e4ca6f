package admission_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// otherWay holds the kinds that the controllers delete only singly (true) or only in collections
// (false).
var otherWay = map[bool][]string{
	true:  {"webhook delivery"},
	false: {"project"},
}

func TestWhoDeletesWhat(t *testing.T) {
	table := []struct {
		name    string
		object  func(name string) client.Object
		allowed []who
		reason  string
	}{
		{"finding", findingMuted, []who{controller, admin, editor, reporter}, "a scanner closes what is gone, and never deletes a decision"},
		{"scan", scanOf, []who{controller, admin, editor, reporter}, "retention is the controllers'"},
		{"review", reviewOf, []who{controller, admin, editor, reporter}, "a repository's removal takes its reviews along"},
		{"review issue", issueOf, []who{controller, admin, editor, reporter}, "a review's removal takes its issues along"},
		{"webhook endpoint", endpointOf, []who{admin, editor, reporter}, "no controller removes an endpoint"},
		{"webhook delivery", deliveryOf, []who{controller, admin, editor, reporter}, "retention is the controllers'"},
		{"project", projectOf, []who{controller, admin, editor, reporter}, "a repository's removal takes its projects along"},
		{"repository", repositoryOf, []who{admin, editor, reporter}, "no controller removes a repository"},
		{"API key", keyOf, []who{admin, editor, reporter}, "no controller removes a key"},
	}
	c := newCast(t, "delete")
	next := nextName()
	for _, row := range table {
		for _, name := range everyone {
			for _, collection := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/collection=%t", row.name, name, collection), func(t *testing.T) {
					live := applied(t, in(c.namespace, row.object(next())))
					var err error
					if collection {
						err = c.as(name).DeleteAllOf(t.Context(), live, client.InNamespace(c.namespace), client.MatchingFields{"metadata.name": live.GetName()})
					} else {
						err = c.as(name).Delete(t.Context(), live)
					}
					allowed := slices.Contains(row.allowed, name) && !(name == controller && slices.Contains(otherWay[collection], row.name))
					wantAnswer(t, err, allowed, row.reason)
					if !allowed {
						env.Stored(t, live)
					}
				})
			}
		}
	}
}

// The controllers would remove the children all the same.
func TestNobodyOrphansWhatBelongsToAnObject(t *testing.T) {
	namespace := env.Organization(t, "orphans")
	inhabit(t, namespace)
	env.Create(t, builder.TriageOperation("there", "G1").In(namespace).Build())
	ways := map[string]struct {
		options client.DeleteOptions
		orphans bool
	}{
		"as it is usual":            {client.DeleteOptions{}, false},
		"by the garbage collector":  {client.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}, false},
		"with its namespace":        {client.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}, false},
		"by an early client":        {client.DeleteOptions{Raw: &metav1.DeleteOptions{OrphanDependents: new(false)}}, false}, //nolint:staticcheck // early clients send it
		"with --cascade=orphan":     {client.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)}, true},
		"by an early client's word": {client.DeleteOptions{Raw: &metav1.DeleteOptions{OrphanDependents: new(true)}}, true}, //nolint:staticcheck // early clients send it
	}
	for _, parent := range []struct {
		object   func(name string) client.Object
		children string // Empty for an object that has none.
	}{
		{projectOf, "the findings and scans of a project"},
		{repositoryOf, "the projects, findings, scans and reviews of a repository"},
		{reviewOf, "the issues of a review"},
		{func(name string) client.Object { return builder.TriageOperation(name, "G1").Build() }, "the parts of a triage operation"},
		{keyOf, "the Secrets of an API key"},
		{endpointOf, "the Secrets of a webhook endpoint"},
		{findingOpen, ""},
	} {
		object := in(namespace, parent.object("there"))
		for way, row := range ways {
			for _, collection := range []bool{false, true} {
				harness.Eventually(t, func(g Gomega) {
					options := row.options
					options.DryRun = []string{metav1.DryRunAll}
					var err error
					if collection {
						err = env.Client.DeleteAllOf(t.Context(), object, &client.DeleteAllOfOptions{
							ListOptions: client.ListOptions{Namespace: namespace}, DeleteOptions: options,
						})
					} else {
						err = env.Client.Delete(t.Context(), object, &options)
					}
					if !row.orphans || parent.children == "" {
						g.Expect(err).NotTo(HaveOccurred(), "%T %s, collection=%t", object, way, collection)
						return
					}
					refused := apierrors.IsInvalid(err) && strings.Contains(err.Error(), parent.children+" are deleted with it")
					g.Expect(refused).To(BeTrue(), "%T %s, collection=%t: %v", object, way, collection, err)
				})
			}
		}
	}
}
