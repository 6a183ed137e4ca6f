package webhooks

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// endElsewhere returns the end of a decision as somebody in another zone may write it.
func endElsewhere() *v1alpha1.Time {
	return &v1alpha1.Time{Time: time.Date(2026, 12, 31, 2, 0, 0, 500_000_000, time.FixedZone("", 2*60*60))}
}

// The payloads for kinds other than findings, byte for byte: identifiers and what has changed, but
// no titles, descriptions or files.
func TestTheDataOfReviewsIssuesAndScans(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "a", UID: "u-1"}
	review := &v1alpha1.Review{
		ObjectMeta: meta,
		Spec: v1alpha1.ReviewSpec{
			RepositoryRef: v1alpha1.RepositoryReference{Name: "shop"}, PRNumber: 412, PRTitle: "private", PRAuthor: "private",
		},
		Status: v1alpha1.ReviewStatus{ClosedIssueCount: 1, OpenIssueCount: 6, OpenHighCount: 1, OpenMediumCount: 2, OpenLowCount: 3},
	}
	issue := &v1alpha1.ReviewIssue{ObjectMeta: meta, Spec: v1alpha1.ReviewIssueSpec{
		ReviewRef: v1alpha1.ReviewReference{Name: "shop-412"}, Title: "private", Description: "private", File: "private", Severity: v1alpha1.LevelHigh,
	}}
	scan := &v1alpha1.Scan{ObjectMeta: meta, Spec: v1alpha1.ScanSpec{
		RepositoryRef: v1alpha1.RepositoryReference{Name: "shop"}, ProjectRef: v1alpha1.ProjectReference{Name: "api"},
		Tool: "gosec", Category: v1alpha1.CategoryCode, Message: "private", Counts: &v1alpha1.ScanCounts{Created: 3},
	}}
	cases := []struct {
		reason string
		data   any
		want   string
	}{
		{"a review's first", DataOfReview(review, v1alpha1.Transition{Seq: 1, Type: "updated", To: "open"}),
			`{"review_id":"a","uid":"u-1","seq":1,"repository_id":"shop","pr_number":412,"pr_status":{"to":"open"},"issues":{"closed_issue_count":1,"open_issue_count":6,"open_high_count":1,"open_medium_count":2,"open_low_count":3,"open_muted_count":0,"open_confirmed_count":0}}`},
		{"an issue is opened", DataOfReviewIssue(issue, v1alpha1.Transition{Seq: 1, Type: "opened", To: "open"}),
			`{"issue_id":"a","uid":"u-1","seq":1,"review_id":"shop-412","severity":"high","state":{"to":"open"}}`},
		{"and resolved", DataOfReviewIssue(issue, v1alpha1.Transition{Seq: 2, Type: "resolved", From: "open", To: "resolved", By: "1c2d"}),
			`{"issue_id":"a","uid":"u-1","seq":2,"review_id":"shop-412","severity":"high","state":{"from":"open","to":"resolved"},"resolved_by":"1c2d"}`},
		{"the end of a decision, in UTC with whole seconds", DataOfReviewIssue(issue, v1alpha1.Transition{Seq: 3, Type: "expired", From: "muted", To: "open", By: "ann", ExpiresAt: endElsewhere()}),
			`{"issue_id":"a","uid":"u-1","seq":3,"review_id":"shop-412","severity":"high","user_status":{"from":"muted","to":"open"},"by":"ann","expires_at":"2026-12-31T00:00:00Z"}`},
		{"a policy's verdict, and not its comment", DataOfReviewIssue(issue, v1alpha1.Transition{
			Seq: 4, Type: "judged", From: "open", To: "muted", By: "policy/mute", Author: "ann", Reason: v1alpha1.DecisionUsedInTests, Comment: "private"}),
			`{"issue_id":"a","uid":"u-1","seq":4,"review_id":"shop-412","severity":"high","verdict":{"from":"open","to":"muted"},"by":"policy/mute","author":"ann","reason":"used-in-tests"}`},
		{"a scan's end", DataOfScan(scan, v1alpha1.Transition{Seq: 1, Type: "completed", To: "Succeeded", By: "scanner/gosec"}),
			`{"scan_id":"a","uid":"u-1","seq":1,"repository_id":"shop","project_id":"api","tool":"gosec","category":"Code","outcome":{"to":"Succeeded"},"abandoned":false,"counts":{"created":3,"updated":0,"closed":0,"reopened":0,"unchanged":0,"skipped":0}}`},
		{"a scan that was given up, told of once its end has come", DataOfScan(scan, v1alpha1.Transition{Seq: 1, Type: "completed", To: "Failed", By: v1alpha1.ControllerFieldManager}),
			`{"scan_id":"a","uid":"u-1","seq":1,"repository_id":"shop","project_id":"api","tool":"gosec","category":"Code","outcome":{"to":"Failed"},"abandoned":true}`},
	}
	for _, c := range cases {
		harness.Same(t, c.reason, c.want, string(harness.JSON(t, c.data)))
	}
}
