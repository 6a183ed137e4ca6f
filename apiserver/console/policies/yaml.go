package policies

import (
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/appsec-dev/findings-operator/client"
)

// manifest is a policy as a Kubernetes manifest.
type manifest struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       spec     `json:"spec"`
}

type metadata struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

type spec struct {
	Match       string     `json:"match"`
	Set         set        `json:"set"`
	Mode        string     `json:"mode"`
	Priority    int32      `json:"priority,omitempty"`
	ValidFrom   *time.Time `json:"validFrom,omitempty"`
	ValidUntil  *time.Time `json:"validUntil,omitempty"`
	MaxFindings int32      `json:"maxFindings,omitempty"`
}

type set struct {
	UserStatus string `json:"userStatus"`
	Reason     string `json:"reason,omitempty"`
	Comment    string `json:"comment,omitempty"`
}

var modes = map[client.TriagePolicyMode]string{
	client.TriagePolicyModePreview: "Preview", client.TriagePolicyModeApply: "Apply",
}

// yamlOf returns the policy as a manifest.
func yamlOf(p client.TriagePolicy, organization string) (string, error) {
	m := manifest{
		APIVersion: "appsec.dev/v1alpha1", Kind: "TriagePolicy",
		Metadata: metadata{Name: p.Id, Namespace: "org-" + organization},
		Spec: spec{
			Match: p.Match, Mode: modes[p.Mode], Priority: p.Priority, ValidFrom: p.ValidFrom, ValidUntil: p.ValidUntil,
			MaxFindings: p.MaxFindings,
			Set:         set{UserStatus: string(p.Set.UserStatus), Reason: reasonOf(p), Comment: p.Set.Comment},
		},
	}
	content, err := yaml.Marshal(m)
	return string(content), err
}

func reasonOf(p client.TriagePolicy) string { return string(ptr.Deref(p.Set.Reason, "")) }
