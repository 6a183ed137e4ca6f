package render_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

func TestAnUploadIsCompletedOnceAllOfItsScansAre(t *testing.T) {
	scan := func(outcome v1alpha1.ScanOutcome, phase v1alpha1.ScanPhase) *v1alpha1.Scan {
		return &v1alpha1.Scan{Spec: v1alpha1.ScanSpec{Outcome: outcome}, Status: v1alpha1.ScanStatus{Phase: phase}}
	}
	completed, failed := scan(v1alpha1.ScanSucceeded, ""), scan(v1alpha1.ScanFailed, v1alpha1.ScanPhaseRunning)
	running, abandoned := scan("", v1alpha1.ScanPhaseRunning), scan("", v1alpha1.ScanPhaseFailed)
	for _, tc := range []struct {
		reason string
		scans  []*v1alpha1.Scan
		want   openapi.ScanStatus
	}{
		{"one is under way", []*v1alpha1.Scan{completed, running, failed}, openapi.ScanStatusRunning},
		{"one failed", []*v1alpha1.Scan{completed, failed}, openapi.ScanStatusFailed},
		{"the process of one is gone", []*v1alpha1.Scan{completed, abandoned}, openapi.ScanStatusFailed},
		{"all are stored", []*v1alpha1.Scan{completed, completed}, openapi.ScanStatusCompleted},
	} {
		if got := render.Upload(tc.scans).Status; got == nil || *got != tc.want {
			t.Errorf("%s: got %v, want %s", tc.reason, got, tc.want)
		}
	}
}

// Retention may have removed the failed Scan.
func TestAnUploadWithoutAllOfItsScansIsNotCompleted(t *testing.T) {
	scan := func(outcome v1alpha1.ScanOutcome) *v1alpha1.Scan {
		return &v1alpha1.Scan{Spec: v1alpha1.ScanSpec{Outcome: outcome, Upload: &v1alpha1.ScanUpload{ID: "u-1", Scans: 2}}}
	}
	upload := render.Upload([]*v1alpha1.Scan{scan(v1alpha1.ScanSucceeded)})
	if upload.Status != nil {
		t.Errorf("the upload is %s", *upload.Status)
	}
	toGitHub := render.SarifStatus(&upload, "")
	if toGitHub.ProcessingStatus != openapi.SarifStatusProcessingStatusFailed || toGitHub.Errors == nil ||
		!strings.Contains((*toGitHub.Errors)[0], "retention") {
		t.Errorf("to GitHub's clients it is %+v", toGitHub)
	}
	if got := render.Upload([]*v1alpha1.Scan{scan(v1alpha1.ScanFailed)}).Status; got == nil || *got != openapi.ScanStatusFailed {
		t.Errorf("with a scan that failed it is %v", got)
	}
}

// Whoever may create Scans can give any number of them the id of an upload.
func TestGitHubsClientsLearnThatTooManyScansHaveTheIDOfAnUpload(t *testing.T) {
	upload := render.Upload(slices.Repeat([]*v1alpha1.Scan{{Spec: v1alpha1.ScanSpec{
		Outcome: v1alpha1.ScanSucceeded, Upload: &v1alpha1.ScanUpload{ID: "u-1", Scans: 1},
	}}}, 32))
	upload.Status = nil // there are more
	shown := render.SarifStatus(&upload, "")
	if shown.Errors == nil || !strings.Contains((*shown.Errors)[0], "more scans have its id") {
		t.Errorf("it is %+v", shown)
	}
}

func TestAScanIsSettledWhenItsConditionIsTrue(t *testing.T) {
	at := v1alpha1.Time{Time: time.Date(2026, 3, 1, 8, 30, 4, 5e8, time.UTC)}
	for status, want := range map[metav1.ConditionStatus]string{
		"": "null", metav1.ConditionFalse: "null", metav1.ConditionTrue: `"2026-03-01T08:30:04Z"`,
	} {
		scan := &v1alpha1.Scan{}
		if status != "" {
			scan.Status.Conditions = []v1alpha1.Condition{{Type: v1alpha1.ConditionSettled, Status: status, LastTransitionTime: at}}
		}
		json, err := render.ScanJSON(scan)
		if err != nil || !bytes.Contains(json, []byte(`"settled_at":`+want)) {
			t.Errorf("with the condition %q: %s (%v)", status, json, err)
		}
	}
}
