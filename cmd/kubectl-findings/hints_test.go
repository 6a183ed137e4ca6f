package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// A field that is dropped would leave a decision without its end, and an operation with more findings.
func TestAWriteThatTheCRDsDoNotUnderstandIsRefused(t *testing.T) {
	const unknown = `unknown field "spec.triage.expiresAt"`
	const refusal = "strict decoding error: " + unknown
	refusals := map[string]*apierrors.StatusError{
		http.MethodPost: apierrors.NewBadRequest(refusal),
		http.MethodPatch: apierrors.NewInvalid(schema.GroupKind{}, "",
			field.ErrorList{field.Invalid(field.NewPath("patch"), `{"spec":{"details":"long"}}`, refusal)}),
	}
	config := &rest.Config{Host: harness.ServeJSON(t, func(r *http.Request) (int, any) {
		if r.URL.Query().Get("fieldValidation") != "Strict" {
			return http.StatusOK, struct{}{} // without the field
		}
		return harness.Refusal(refusals[r.Method])
	})}
	connected, err := newClient(config)
	harness.Must(t, err)
	s := &session{client: connected, namespace: "org-acme", config: config}
	finding := builder.Finding("f-1").In("org-acme").Build()
	for method, err := range map[string]error{
		"create": s.create(t.Context(), finding.DeepCopy()),
		"patch":  s.patch(t.Context(), finding, client.RawPatch(types.MergePatchType, []byte(`{}`)), client.DryRunAll),
	} {
		if err == nil || !strings.Contains(err.Error(), unknown+"): upgrade its findings-operator") ||
			strings.Contains(err.Error(), "long") || kube.IsOutcomeUnknown(err) {
			t.Errorf("%s: %v", method, err)
		}
	}
}

func TestAnImportThatTheCRDsDoNotUnderstandSaysWhatToDo(t *testing.T) {
	s := &session{namespace: "org-acme", config: &rest.Config{Host: "https://here"}}
	refusal := apierrors.NewInternalError(errors.New("failed to create typed patch object: .spec.tomorrow: field not declared in schema"))
	err := s.explainImport(t.Context(), fmt.Errorf("record the scan of lint: %w", refusal), "import scans")
	harness.ErrorContains(t, "an import", err, "https://here are older than this plugin: upgrade its findings-operator")
	harness.ErrorContains(t, "an import", err, "the server's version.\nWhat is already written is kept")
	harness.Must(t, s.explainImport(t.Context(), nil, "import scans"))
}

// The API server answers with a text, as one that does not work does.
func TestAnImportWithoutTheCRDsEndsAtOnce(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	file := filepath.Join(t.TempDir(), "x.sarif")
	harness.Must(t, os.WriteFile(file, []byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"lint"}}}]}`), 0o600))
	for _, command := range []string{
		"import --repository shop --project web",
		"import --repository acme/shop --project web",
		"review --repository shop --pr 1 --commit abcdef1",
	} {
		var requests []string
		ctx, stop := context.WithCancel(t.Context())
		server := harness.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if requests = append(requests, r.Method+" "+r.URL.Path); len(requests) > 1 {
				stop()
			}
			http.NotFound(w, r)
		}))
		plugin := newRootCommand(genericiooptions.NewTestIOStreamsDiscard())
		plugin.SetArgs(append(strings.Fields(command), file, "-n", "payments", "--server", server))
		if err := plugin.ExecuteContext(ctx); err == nil || !strings.Contains(err.Error(), "knows no findings: install findings-operator") ||
			strings.Contains(err.Error(), "there is no") {
			t.Errorf("%s: %v", command, err)
		}
		if len(requests) != 1 {
			t.Errorf("%s: it sent %q, want one request", command, requests)
		}
		stop()
	}
}

func TestARoleIsAdvisedOnlyWhereItHelps(t *testing.T) {
	s := &session{namespace: "org-acme"}
	for reason, hint := range map[string]bool{
		"exceeded quota: findings": false, "no access": true,
		"ValidatingAdmissionPolicy 'hold' with binding 'hold' denied request: a legal hold":                                 false,
		`admission webhook "hold.example.com" denied the request: a legal hold`:                                             false,
		"ValidatingAdmissionPolicy 'findings-facts.appsec.dev' with binding 'all' denied request: me needs the verb report": true,
	} {
		err := s.explain(apierrors.NewForbidden(schema.GroupResource{}, "i-1", errors.New(reason)), need{what: "record reviews", role: roleScanner})
		harness.Same(t, reason, hint, strings.Contains(err.Error(), roleScanner))
	}
}

// Who may read no namespace is not told that this one does not exist.
func TestANamespaceGivenAsAnOrganizationIsQuestioned(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no access"))
	for namespace, asked := range map[string]bool{"org-org-acme": true, "org-acme": false} {
		err := (&session{namespace: namespace}).explain(refused, need{what: "list findings", role: roleViewer})
		harness.Same(t, namespace+": "+err.Error(), asked,
			strings.Contains(err.Error(), "\nDid you mean --organization acme? It takes the name without org-.\nTo list"))
	}
}

func TestAFullQuotaIsExplainedOnce(t *testing.T) {
	const advice = "delete what is no longer needed, or"
	full := apierrors.NewForbidden(schema.GroupResource{}, "reopen-1", errors.New("exceeded quota: findings-quota"))
	s := &session{namespace: "org-acme"}
	for reason, err := range map[string]error{
		"an operation": s.explain(full, need{what: "triage findings", role: roleTriager}),
		"an import":    s.explainImport(t.Context(), importer.ExplainQuota(full, "Finding"), "import scans"),
	} {
		harness.Same(t, reason+": "+err.Error(), 1, strings.Count(strings.ToLower(err.Error()), advice))
	}
}

// Kubernetes counts objects of a new kind some minutes after its installation.
func TestAQuotaThatIsNotCountedYetAsksToTryAgain(t *testing.T) {
	uncounted := apierrors.NewForbidden(schema.GroupResource{}, "ci", errors.New("status unknown for quota: findings-quota"))
	s := &session{namespace: "org-acme"}
	for reason, err := range map[string]error{
		"a key":     s.explain(uncounted, need{what: "create API keys", role: roleAdmin}),
		"an import": s.explainImport(t.Context(), fmt.Errorf("create project web: %w", uncounted), "import scans"),
	} {
		harness.ErrorContains(t, reason, err, "up to five minutes after their kind was installed")
		harness.Same(t, reason+": a role is advised", false, strings.Contains(err.Error(), "ClusterRole"))
	}
}

func TestAMissingReasonIsAskedForAsAFlag(t *testing.T) {
	refused := apierrors.NewInvalid(schema.GroupKind{}, "f-1", field.ErrorList{field.Forbidden(nil,
		"ValidatingAdmissionPolicy 'findings-reasons.appsec.dev' with binding 'all' denied request: set spec.triage.reason")})
	const advice = "\nGive one with --reason, for example --reason false-positive."
	s := &session{namespace: "org-acme"}
	err := s.explain(refused, need{what: "triage findings", role: roleTriager})
	harness.Same(t, "a mute without a reason", refused.Error()+advice, err.Error())
	err = s.explain(refused, need{what: "triage findings", role: roleTriager, kind: kindOperation})
	harness.ErrorContains(t, "an operation", err, advice+" It replaces the reason of findings that are muted already", "name them",
		"kubectl findings list -n org-acme ... -o name | xargs kubectl findings triage -n org-acme --mute")
	harness.Same(t, "on Windows", "kubectl findings triage NAME... --mute -n org-acme", s.muteByName("windows"))
}

func TestAnObjectThatCannotBeReadSaysHowToRepairIt(t *testing.T) {
	connected, err := newClient(&rest.Config{Host: harness.ServeJSON(t, func(*http.Request) (int, any) {
		odd := stored(t, builder.Finding("f-1").In("org-acme").Build())
		odd.Object["spec"].(map[string]any)["details"] = map[string]any{"location": map[string]any{"lineNumber": "abc"}}
		return http.StatusOK, odd.Object
	})})
	harness.Must(t, err)
	s := &session{client: connected, namespace: "org-acme"}
	_, err = (&triager{session: s}).decideAboutFinding(t.Context(), "f-1")
	err = s.notFound(t.Context(), err, need{what: "triage findings", role: roleTriager, kind: "Finding", name: "f-1"})
	harness.ErrorContains(t, "a finding with a line in words", err,
		"\nUpgrade the plugin if it is older than the service; else repair it with: kubectl edit findings.appsec.dev f-1 -n org-acme")
}

// A kubeconfig's default namespace belongs to no organization: with a role there the user would see nothing.
func TestNoRoleIsAdvisedOutsideOfOrganizations(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no access"))
	err := (&session{namespace: "default"}).explain(refused, need{what: "list findings", role: roleViewer})
	if !strings.HasSuffix(err.Error(), "\nnamespace default belongs to no organization: choose one with --organization") ||
		strings.Contains(err.Error(), roleViewer) {
		t.Errorf("it says %q", err)
	}
}

func TestSimilarNames(t *testing.T) {
	names := []string{"f-abcdefgh", "f-abcdefgx", "f-zzzzzzzz", "dashboard", "dash", "board"}
	for reason, tc := range map[string]struct {
		name string
		want []string
	}{
		"the beginning of two":    {"f-abc", []string{"f-abcdefgh", "f-abcdefgx"}},
		"more than the whole":     {"f-zzzzzzzzz", []string{"f-zzzzzzzz"}},
		"a letter left out":       {"dashbord", []string{"dashboard"}},
		"two letters swapped":     {"dsahboard", []string{"dashboard"}},
		"nearest first":           {"f-abcdefgy", []string{"f-abcdefgh", "f-abcdefgx"}},
		"nothing like it":         {"completely", nil},
		"nothing":                 {"", nil},
		"too short to be a guess": {"xyz", nil},
	} {
		if diff := cmp.Diff(tc.want, similar(tc.name, names)); diff != "" && len(tc.want)+len(similar(tc.name, names)) > 0 {
			t.Errorf("%s: like %q (-want +got):\n%s", reason, tc.name, diff)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "axc", 1}, {"abc", "bc", 1}, {"kitten", "sitting", 3}} {
		harness.Same(t, "the distance of "+tc.a+" and "+tc.b, tc.want, distance(tc.a, tc.b))
	}
}
