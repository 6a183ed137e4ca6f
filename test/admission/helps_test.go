package admission_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

const (
	// helped is an editor who is given the role that a refusal names.
	helped            who = "helped"
	organizationAdmin who = "organization-admin"
)

func TestARefusalOfAFactNamesWhatHelps(t *testing.T) {
	c := newCast(t, "helps")
	c.join(t, helped, testenv.Role("test-editor"))
	c.join(t, helped, testenv.Scanner)
	c.join(t, organizationAdmin, testenv.Admin)
	harness.Eventually(t, func(g Gomega) { // the roles are in force
		g.Expect(creates(findingOpen)(t, c.as(helped), c.namespace)).To(Succeed())
		g.Expect(creates(repositoryOf)(t, c.as(organizationAdmin), c.namespace)).To(Succeed())
	})

	for resource, object := range map[string]client.Object{
		"findings":     builder.Finding("o").In(c.namespace).Build(),
		"scans":        builder.Scan("o", start).In(c.namespace).Build(),
		"reviews":      builder.Review("o").In(c.namespace).Build(),
		"reviewissues": builder.ReviewIssue("o").In(c.namespace).Build(),
		"repositories": builder.Repository("o").In(c.namespace).Build(),
		"projects":     builder.Project("o").In(c.namespace).Build(),
	} {
		t.Run(resource, func(t *testing.T) {
			create := func(as who) error { return c.as(as).Create(t.Context(), object.DeepCopyObject().(client.Object)) }
			refusal := create(editor)
			if wantRefusal(t, "an editor", refusal, "needs the verb report on "+resource+".appsec.dev"); t.Failed() {
				return
			}
			helps := helped
			if strings.Contains(refusal.Error(), "(ClusterRole "+string(testenv.Admin)+")") {
				helps = organizationAdmin
				wantRefusal(t, "with findings-scanner, which the refusal does not name", create(helped))
			} else if !strings.Contains(refusal.Error(), "(ClusterRole "+string(testenv.Scanner)+")") {
				t.Errorf("the refusal names no role: %v", refusal)
			}
			harness.NoError(t, "what the refusal names", create(helps))
		})
	}
}
