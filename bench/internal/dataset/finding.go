package dataset

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
)

const (
	closedPercent  = 10
	triagedPercent = 15
)

// Finding returns the i-th finding, from 0. Findings are made on demand, because all of them together
// would fill the memory that is measured.
func (d *Data) Finding(i int) *v1alpha1.Finding {
	f := d.declare(i)
	settleFinding(f)
	return f
}

// declare makes the i-th finding without its status.
func (d *Data) declare(i int) *v1alpha1.Finding {
	r := dice("finding", i)
	s := byWeight[r.IntN(len(byWeight))]
	if i%RareEvery == RareEvery/2 {
		s = &rare
	}
	project := d.Projects[r.IntN(len(d.Projects))]
	repository := string(project.Spec.RepositoryRef.Name)
	detected := moment(r, d.options.Now)
	commit, path, line := sha(r), filePath(r, s.extension), 1+r.IntN(900)
	content := fmt.Sprintf("%032x", r.Uint64())

	name := "f-" + fingerprints.Hash(repository, project.Name, s.tool, s.rule, path, content, fmt.Sprint(i))
	f := &v1alpha1.Finding{
		TypeMeta: typeMeta("Finding"), ObjectMeta: d.meta("Finding", name, detected),
		Spec: v1alpha1.FindingSpec{
			RepositoryRef: project.Spec.RepositoryRef,
			ProjectRef:    v1alpha1.ProjectReference{Name: v1alpha1.ResourceName(project.Name)},
			DetectedAt:    &detected, Tool: s.tool, Category: s.category, RuleID: s.rule, Class: s.class,
			Confidence: pick(r, v1alpha1.LevelHigh, v1alpha1.LevelMedium, v1alpha1.LevelLow), CommitHash: commit,
			Fingerprints: []v1alpha1.Fingerprint{{Name: s.fingerprint, Value: content + ":" + fmt.Sprint(1+r.IntN(9))}},
			Details:      details(r, s, repository, commit, path, line),
			Scan: &v1alpha1.FindingScan{ScanID: "scan-" + fingerprints.Hash(project.Name, s.tool, commit),
				AnalyzedAt: &detected},
			Triage: v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusOpen},
		},
	}
	if !d.options.Undecided {
		decide(r, f, detected.Time)
	}
	return f
}

func details(r *rand.Rand, s *shape, repository, commit, path string, line int) v1alpha1.FindingDetails {
	out := v1alpha1.FindingDetails{
		Title: s.title, Description: s.description, Severity: s.severity, Code: s.code, Remediation: s.remediation,
		RemediationEffort: pick(r, v1alpha1.EffortEasy, v1alpha1.EffortMedium, v1alpha1.EffortHard),
		Location: &v1alpha1.FileLocation{
			FilePath: path, LineNumber: int32(line), Hash: fmt.Sprintf("%016x", r.Uint64()),
			URL: fmt.Sprintf("https://code.example.org/acme/%s/blob/%s/%s#L%d", repository, commit, path, line),
		},
	}
	if s.category != v1alpha1.CategoryCode {
		return out
	}
	out.Location.MethodName = pick(r, "handle", "list", "update", "render", "score", "statement")
	out.ExploitFeasibility = pick(r, v1alpha1.EffortEasy, v1alpha1.EffortMedium, v1alpha1.EffortHard)
	for n := r.IntN(3); n > 0; n-- {
		from, at := filePath(r, s.extension), 1+r.IntN(400)
		out.SupportingFiles = append(out.SupportingFiles, v1alpha1.FileLocation{
			FilePath: from, LineNumber: int32(at),
			URL: fmt.Sprintf("https://code.example.org/acme/%s/blob/%s/%s#L%d", repository, commit, from, at),
		})
	}
	if chance(r, 40) {
		out.EndpointLocations = []v1alpha1.EndpointLocation{{
			Type: v1alpha1.EndpointHTTP, Action: pick(r, "GET", "POST", "PUT"), Path: "/api/v1/" + strings.TrimSuffix(path,
				s.extension),
		}}
	}
	return out
}

// decide closes some findings and adds people's decisions to some.
func decide(r *rand.Rand, f *v1alpha1.Finding, detected time.Time) {
	if chance(r, triagedPercent) {
		f.Spec.Triage = v1alpha1.FindingTriage{
			UserStatus: pick(r, v1alpha1.UserStatusActive, v1alpha1.UserStatusMuted, v1alpha1.UserStatusMuted),
			By:         pick(r, "ann@example.org", "bo@example.org", "apikey/triage"),
			Comments: pick(r, "Only reachable from the internal network, and the value is a constant there.",
				"Seen in the log of the staging system; to be mended this week.", ""),
		}
	}
	if chance(r, closedPercent) {
		f.Spec.Closed = &v1alpha1.FindingClosure{At: v1alpha1.NewTime(detected), ScanID: "scan-" + fingerprints.Hash(f.Name)}
	}
}

// settleFinding adds the status that the controller writes at its first reconcile, when no endpoint
// asks for deliveries, and the managed fields of all writers.
func settleFinding(f *v1alpha1.Finding) {
	at := v1alpha1.NewTime(f.CreationTimestamp.Time)
	facts, triage := f.Spec, f.Spec.Triage
	facts.Triage = v1alpha1.FindingTriage{}
	f.ManagedFields = []metav1.ManagedFieldsEntry{
		applied(v1alpha1.ScannerFieldManagerPrefix+f.Spec.Tool, at).entry("spec", factsLikeness(&facts), facts),
	}
	triaged := triage.By != ""
	if triaged {
		f.ManagedFields = append(f.ManagedFields, applied("kubectl-findings", at).entry("spec",
			fmt.Sprint("triage ", triage.Comments != ""), map[string]any{"triage": triage}))
	}
	f.Status = findingstate.Observe(f, nil, at.Time)
	f.Status.EmittedSeq = findingstate.History(&f.Status).LastSeq()
	f.Status.Conditions = ready(at, "The status is that of the spec.")
	f.ManagedFields = append(f.ManagedFields, observed(at).entry("status",
		fmt.Sprint("finding ", len(f.Status.Transitions), triaged, triage.Comments != ""), f.Status))
}

// factsLikeness returns a key that is equal for findings with the same set of facts, whatever their
// values.
func factsLikeness(facts *v1alpha1.FindingSpec) string {
	return fmt.Sprint(facts.Fingerprints[0].Name, facts.Category, facts.Details.Code != "",
		len(facts.Details.SupportingFiles) > 0, len(facts.Details.EndpointLocations) > 0, facts.Closed != nil)
}

func ready(at v1alpha1.Time, message string) []v1alpha1.Condition {
	return []v1alpha1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 1,
		LastTransitionTime: at, Reason: v1alpha1.ReasonReconciled, Message: message,
	}}
}

func filePath(r *rand.Rand, extension string) string {
	return pick(r, "services", "internal", "src/main", "packages", "deploy") + "/" +
		pick(r, "payments", "orders", "accounts", "search", "billing", "notifications", "identity") + "/" +
		pick(r, "handlers", "storage", "transport", "jobs", "views") + "/" +
		pick(r, "list", "update", "export", "session", "render", "worker", "client") + fmt.Sprint(r.IntN(40)) + extension
}
