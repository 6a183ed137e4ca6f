package triagepolicy

import (
	"regexp"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var manifestBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// The policies of docs/triage.md together decide as described there.
func TestThePoliciesOfTheGuide(t *testing.T) {
	g, r := NewWithT(t), running(t)
	finds := func(name, path string, change func(*v1alpha1.FindingSpec)) *v1alpha1.Finding {
		return testenv.Create(t, env, builder.Finding(name).Project("repo", "api").In(r.namespace).Mutate(func(f *v1alpha1.Finding) {
			f.Spec.Details.Location = &v1alpha1.FileLocation{FilePath: path}
			change(&f.Spec)
		}).Build())
	}
	env.Create(t, builder.Project("api").In(r.namespace).Repository("repo").Build())
	nothing := func(*v1alpha1.FindingSpec) {}
	lodash := func(score string) func(*v1alpha1.FindingSpec) {
		return func(s *v1alpha1.FindingSpec) {
			s.Package, s.Details.Score = &v1alpha1.FindingPackage{Name: "lodash"}, score
		}
	}
	inTest, token := finds("f-test", "orders/testdata/a.go", nothing), finds("f-token", "orders/testdata/token.txt",
		func(s *v1alpha1.FindingSpec) { s.Category = v1alpha1.CategorySecret })
	low, high, code := finds("f-low", "yarn.lock", lodash("6.5")), finds("f-high", "yarn.lock", lodash("7.5")), finds("f-code", "a.go", nothing)

	page := harness.RepositoryFile(t, "docs", "triage.md")
	policies := map[string]*v1alpha1.TriagePolicy{}
	for _, block := range manifestBlock.FindAllStringSubmatch(page, -1) {
		policy := &v1alpha1.TriagePolicy{}
		g.Expect(yaml.UnmarshalStrict([]byte(block[1]), policy)).To(Succeed())
		policy.Namespace, policies[policy.Name] = r.namespace, policy
		env.Create(t, policy)
	}
	preview := policies["mute-tests"]
	r.counts(preview, 2, 0, 1, 1, 0, 0)
	r.says(preview, v1alpha1.ReasonPreview, ok)
	r.is(inTest, v1alpha1.FindingStateOpen, "")

	env.Patch(t, preview, `{"spec":{"mode":"Apply"}}`)
	r.is(inTest, v1alpha1.FindingStateOpenMuted, "mute-tests")
	r.is(token, v1alpha1.FindingStateOpen, "secrets-count")
	r.is(low, v1alpha1.FindingStateOpenMuted, "accept-lodash")
	r.is(high, v1alpha1.FindingStateOpen, "")
	r.is(code, v1alpha1.FindingStateOpen, "")
}
