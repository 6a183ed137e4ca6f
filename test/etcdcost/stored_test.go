package etcdcost

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// storedFindings contains findings made from results of document as two commits stored them in etcd, in a folder
// for each commit: every field below spec and status has its own owner. Those of 5b72824 have no evidence yet; one
// of them is muted.
const storedFindings = "testdata/stored"

// Findings that lack facts unknown to their importer are written by the first import, as at any change of
// their facts.
const withoutEvidence = "5b72824"

// TestWhatAnEarlierVersionStoredIsWrittenAtItsNextChangeAlone takes findings that earlier versions stored through the
// next steps of their life.
func TestWhatAnEarlierVersionStoredIsWrittenAtItsNextChangeAlone(t *testing.T) {
	controller, facade := operator(t)
	controller.Run(t)
	facade.Run(t)
	l := newLife(t, "stored", "http://"+facade.Address)
	files := l.putStored()
	decided := l.all()
	for name := range files {
		if !sameHistory(files[name].Status.Transitions, decided[name].Status.Transitions, 0) {
			t.Errorf("%s: an event came of the new version alone: %+v", name, decided[name].Status.Transitions)
		}
	}

	l.imports("first", commitA, everything)
	l.settle()
	imported := l.all()
	for name, was := range decided {
		if got := imported[name]; got.ResourceVersion != was.ResourceVersion && was.Spec.Evidence != "" {
			t.Errorf("%s is written though the results are the same:\n%s", name, cmp.Diff(was, got))
		}
	}
	l.wantTriage(imported, files)

	l.imports("second", commitB, everything)
	l.recorded()
	changed := l.all()
	l.wantTriage(changed, files)
	for name, was := range imported {
		got := changed[name]
		if got.Generation != was.Generation+1 || !sameHistory(was.Status.Transitions, got.Status.Transitions, 1) {
			t.Errorf("%s: generation %d became %d, want one write, and one transition more:\n%+v",
				name, was.Generation, got.Generation, got.Status.Transitions)
		}
		wantCoarseOwners(t, got)
	}

	l.triageByKubectl("active", "It is reachable after all.")
	l.imports("second", commitB, nothing)
	l.recorded()
	for name, got := range l.all() {
		if got.Spec.Closed == nil || got.Status.State != v1alpha1.FindingStateClosed || got.Spec.Triage.UserStatus != v1alpha1.UserStatusActive {
			t.Errorf("%s: closed %v, state %s, triage %+v", name, got.Spec.Closed, got.Status.State, got.Spec.Triage)
		}
		if !sameHistory(changed[name].Status.Transitions, got.Status.Transitions, 2) {
			t.Errorf("%s: want triaged and closed after what there was: %+v", name, got.Status.Transitions)
		}
	}
	l.imports("second", commitB, everything)
	l.recorded()
	for name, got := range l.all() {
		if got.Spec.Closed != nil || got.Spec.Triage.UserStatus != v1alpha1.UserStatusActive {
			t.Errorf("%s is reported again: closed %v, triage %+v", name, got.Spec.Closed, got.Spec.Triage)
		}
		if !sameHistory(changed[name].Status.Transitions, got.Status.Transitions, 3) {
			t.Errorf("%s: want reopened alone after triaged and closed: %+v", name, got.Status.Transitions)
		}
	}
}

// putStored puts the findings into etcd, and returns them by name once the controllers have observed
// them.
func (l *life) putStored() map[string]*v1alpha1.Finding {
	l.Helper()
	files, err := filepath.Glob(filepath.Join(storedFindings, "*", "*.json"))
	harness.Must(l.T, err)
	if len(files) == 0 {
		l.Fatalf("no stored finding in %s", storedFindings)
	}
	out := map[string]*v1alpha1.Finding{}
	for _, file := range files {
		content := []byte(harness.File(l.T, file))
		name, finding := strings.TrimSuffix(filepath.Base(file), ".json"), harness.Decoded[*v1alpha1.Finding](l.T, content)
		harness.Must(l.T, env.PutIntoEtcd(l.Context(), "findings", l.namespace, name, content))
		if without := filepath.Base(filepath.Dir(file)) == withoutEvidence; without != (finding.Spec.Evidence == "") {
			l.Errorf("%s: evidence %q", file, finding.Spec.Evidence)
		}
		out[name] = finding
	}
	l.n = len(out)
	l.settle()
	return out
}

// all returns the life's findings by name.
func (l *life) all() map[string]*v1alpha1.Finding {
	l.Helper()
	list := testenv.List(l, NewWithT(l), env, &v1alpha1.FindingList{}, client.InNamespace(l.namespace))
	harness.Same(l.T, "findings", l.n, len(list.Items))
	out := map[string]*v1alpha1.Finding{}
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out
}

// wantTriage expects the stored decisions.
func (l *life) wantTriage(got, stored map[string]*v1alpha1.Finding) {
	l.Helper()
	for name, was := range stored {
		harness.Same(l.T, name+": the triage", was.Spec.Triage, got[name].Spec.Triage)
	}
}

// sameHistory reports whether the history consists of the earlier transitions followed by that many
// new ones.
func sameHistory(before, after []v1alpha1.Transition, more int) bool {
	return len(after) == len(before)+more && cmp.Equal(before, after[:len(before)])
}

// wantCoarseOwners expects each part of a finding to have one owner as a whole.
func wantCoarseOwners(t *testing.T, f *v1alpha1.Finding) {
	t.Helper()
	for _, entry := range f.ManagedFields {
		for _, part := range []string{"details", "agent", "scan", "fingerprints", "repositoryRef", "projectRef", "status"} {
			if owned := entry.FieldsV1.GetRawString(); strings.Contains(owned, `"f:`+part+`":{"`) {
				t.Errorf("%s: %s owns single fields of %s: %s", f.Name, entry.Manager, part, owned)
			}
		}
	}
}
