package faults

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/faults/internal/rig"
)

// brought returns a state of an uploaded finding, which is its first state if created is set.
func brought(created bool, name, path string, changes ...func(*v1alpha1.Finding)) rig.Stored {
	f := v1alpha1.Finding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	f.Spec.ProjectRef.Name, f.Spec.Details.Location = "p", &v1alpha1.FileLocation{FilePath: path}
	for _, change := range changes {
		change(&f)
	}
	s := stored("findings", name, f)
	s.Namespace, s.Created = uploadsNamespace, created
	return s
}

func closed(f *v1alpha1.Finding) { f.Spec.Closed = &v1alpha1.FindingClosure{} }

func decided(number int) func(*v1alpha1.Finding) {
	return func(f *v1alpha1.Finding) {
		f.Spec.Triage.Comments, f.Spec.Triage.UserStatus = strconv.Itoa(number), userStatuses[number%len(userStatuses)]
	}
}

// ofScan returns a state of the scan of an upload of the second commit.
func ofScan(name string, outcome v1alpha1.ScanOutcome, phase v1alpha1.ScanPhase) rig.Stored {
	scan := v1alpha1.Scan{ObjectMeta: metav1.ObjectMeta{Name: name}}
	scan.Spec.ProjectRef.Name, scan.Spec.Commit, scan.Spec.Outcome, scan.Status.Phase = "p", secondCommit, outcome, phase
	scan.Spec.Upload = &v1alpha1.ScanUpload{ID: "u"}
	s := stored("scans", name, scan)
	s.Namespace = uploadsNamespace
	return s
}

// A judge that accepts everything would find no bugs in uploads either.
func TestTheAuditOfUploadsSeesWhatIsLostDoubledAndHalf(t *testing.T) {
	t.Parallel()
	const results = 2
	var base []rig.Stored
	for path := range expected(firstCommit, results) {
		base = append(base, brought(true, "f-"+path, path))
	}
	kept, dropped := keptPrefix+"00000.go", droppedPrefix+"00000.go"
	one, two := newPrefix+"00000.go", newPrefix+"00001.go"
	added := []rig.Stored{brought(true, "f-"+one, one), brought(true, "f-"+two, two)}
	var ends []rig.Stored
	for i := range droppedResults {
		path := fmt.Sprintf("%s%05d.go", droppedPrefix, i)
		ends = append(ends, brought(false, "f-"+path, path, closed))
	}
	succeeded := ofScan("s", v1alpha1.ScanSucceeded, v1alpha1.ScanPhaseCompleted)
	good := func(parts ...[]rig.Stored) []rig.Stored {
		out := append([]rig.Stored{}, base...)
		for _, part := range parts {
			out = append(out, part...)
		}
		return out
	}
	only := func(s ...rig.Stored) []rig.Stored { return s }
	running := ofScan("s", "", v1alpha1.ScanPhaseRunning)
	for _, c := range []struct {
		reason  string
		history []rig.Stored
		decided map[string]int
		want    string // in the errors; empty for no error
	}{
		{"all is well", good(only(running), added, ends, only(succeeded)), nil, ""},
		{
			"one dies, and the next finishes",
			good(only(running), added[:1], only(ofScan("s", "", v1alpha1.ScanPhaseFailed)), added[1:], ends,
				only(ofScan("s2", v1alpha1.ScanSucceeded, v1alpha1.ScanPhaseCompleted))), nil, "",
		},
		{"a heartbeat that never ends", good(added, ends, only(succeeded, ofScan("s2", "", v1alpha1.ScanPhaseRunning))), nil, "has no end"},
		{"closed before all is there", good(added[:1], ends, added[1:], only(succeeded)), nil, "half closed"},
		{"said to be complete too soon", good(added[:1], only(succeeded), added[1:], ends), nil, "says that it is complete"},
		{"complete without its closings", good(added, only(succeeded)), nil, "says that it is complete"},
		{"said to be complete and not ended", good(added, ends, only(ofScan("s", "", v1alpha1.ScanPhaseFailed))), nil, "was said to be complete"},
		{"two ends", good(added, ends, only(succeeded, ofScan("s", v1alpha1.ScanFailed, v1alpha1.ScanPhaseFailed))), nil, "and then as"},
		{"a duplicate", good(added, only(brought(true, "f-other", one)), ends, only(succeeded)), nil, "a second finding"},
		{"made twice", good(added, added[:1], ends, only(succeeded)), nil, "made twice"},
		{"closed though reported", good(added, only(brought(false, "f-"+kept, kept, closed)), ends, only(succeeded)), nil, "though every file has it"},
		{"opened again", good(added, ends, only(brought(false, "f-"+dropped, dropped), succeeded)), nil, "opened again"},
		{
			"a decision that stays", good(only(brought(false, "f-"+kept, kept, decided(1))), added, ends, only(succeeded)),
			map[string]int{uploadsNamespace + "/f-" + kept: 1}, "",
		},
		{
			"a decision that is lost",
			good(only(brought(false, "f-"+kept, kept, decided(1)), brought(false, "f-"+kept, kept)), added, ends, only(succeeded)), nil,
			"gave way",
		},
		{
			"a decision that loses its status", good(added, only(brought(false, "f-"+kept, kept, decided(1), func(f *v1alpha1.Finding) {
				f.Spec.Triage.UserStatus = userStatuses[0]
			})), ends, only(succeeded)), nil, "has the user status",
		},
		{
			"a decision that was never stored", good(added, ends, only(succeeded)),
			map[string]int{uploadsNamespace + "/f-" + kept: 1}, "was acknowledged",
		},
	} {
		var said errorList
		a := newUploadsAudit(&verdict{t: &said}, results)
		for _, state := range c.history {
			if err := a.take(state); err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
		}
		a.check(map[string]string{uploadsNamespace + "/p": "u"}, c.decided)
		wantsSaid(t, c.reason, c.want, strings.Join(said, "\n"))
	}
}
