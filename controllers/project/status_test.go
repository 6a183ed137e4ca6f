package project

import (
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestInEffect(t *testing.T) {
	scanner := v1alpha1.ProjectAssessment{BusinessCriticality: "low", Exposure: "internal", Summary: "scanner's"}
	cases := []struct {
		reason              string
		user, scanner, want v1alpha1.ProjectAssessment
	}{
		{"no values", v1alpha1.ProjectAssessment{}, v1alpha1.ProjectAssessment{}, v1alpha1.ProjectAssessment{}},
		{"scanner values without user values", v1alpha1.ProjectAssessment{}, scanner, scanner},
		{"each member on its own", v1alpha1.ProjectAssessment{Exposure: "public"}, scanner,
			v1alpha1.ProjectAssessment{BusinessCriticality: "low", Exposure: "public", Summary: "scanner's"}},
		{"user values without scanner values", v1alpha1.ProjectAssessment{Summary: "ours"}, v1alpha1.ProjectAssessment{},
			v1alpha1.ProjectAssessment{Summary: "ours"}},
	}
	for _, c := range cases {
		spec := v1alpha1.ProjectSpec{User: c.user, Scanner: c.scanner}
		harness.Same(t, c.reason, c.want, spec.InEffect())
	}
}
