package readmodel

import (
	"crypto/sha256"
	"encoding/hex"
	"sync/atomic"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// Item is a finding as it is shown. It is immutable, also for its users.
type Item struct {
	*stored
	// Shown is the part of what the finding shows that comes from other objects.
	render.Shown

	// tag is nil until it is requested.
	tag atomic.Pointer[string]
	// row is the finding's row in the table for counting.
	row uint32
}

// stored is the data kept of an object. Items that differ only in data of other objects share it.
type stored struct {
	// ID is the finding's name.
	ID string
	// graded is the sort value of lists by severity: the grade, followed by the time that CreatedAt returns,
	// which is not stored separately.
	graded string
	// RepoID and ProjectID are the names of the finding's repository and project.
	RepoID, ProjectID string
	// Class of vulnerability; may be empty.
	Class string
	// Status is open, open_muted or closed.
	Status string
	// UserStatus is open, active or muted.
	UserStatus string
	// Severity is high, medium or low.
	Severity string
	// Stale means that the decision is based on facts that have changed, Suppressed that the source suppresses
	// the finding.
	Stale, Suppressed bool
	// recorded means that the time of the last change comes from the status.
	recorded bool
	// Basis holds the facts that a decision made now is based on.
	Basis string

	namespace       string
	uid             types.UID
	resourceVersion string
	comments        unique.Handle[string]
	// declared is the basis that the decision itself records.
	declared string
	// grounds of the decision; nil if it has neither reason nor end.
	grounds  *grounds
	rendered render.Finding
	traits   unique.Handle[traits]
	// policy is the result of Policy.
	policy unique.Handle[string]
	text   string
	// path of the file; empty if there is none.
	path    string
	history []render.Moment
}

// grounds are the reason and the end of a decision.
type grounds struct {
	// userStatus is the decision, whether or not it is in force.
	userStatus         v1alpha1.UserStatus
	reason             v1alpha1.DecisionReason
	expiresAt, endedAt *v1alpha1.Time
}

func groundsOf(f *v1alpha1.Finding) *grounds {
	triage := &f.Spec.Triage
	if triage.Reason == "" && triage.ExpiresAt == nil {
		return nil
	}
	return &grounds{findingstate.Declared(&f.Spec), triage.Reason, triage.ExpiresAt, f.Status.EndedAt}
}

// CreatedAt returns the shown time: RFC 3339, UTC, whole seconds.
func (i *Item) CreatedAt() string { return i.graded[gradeBytes:] }

// Policy returns the id of the policy behind the verdict in force; "" if there is none.
func (i *Item) Policy() string { return i.policy.Value() }

// Object returns the parts of the resource that a decision about it needs: its name, UID and resourceVersion,
// its repository and project, and the present decision and whether it has ended.
func (i *Item) Object() *v1alpha1.Finding {
	object := &v1alpha1.Finding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: i.namespace, Name: i.ID, UID: i.uid, ResourceVersion: i.resourceVersion,
		},
		Spec: v1alpha1.FindingSpec{
			RepositoryRef: v1alpha1.RepositoryReference{Name: v1alpha1.ResourceName(i.RepoID)},
			ProjectRef:    v1alpha1.ProjectReference{Name: v1alpha1.ResourceName(i.ProjectID)},
			Triage: v1alpha1.FindingTriage{
				UserStatus: v1alpha1.UserStatus(i.UserStatus), Comments: i.comments.Value(), Basis: i.declared,
			},
		},
	}
	if g := i.grounds; g != nil {
		triage := &object.Spec.Triage
		triage.UserStatus, triage.Reason, triage.ExpiresAt = g.userStatus, g.reason, g.expiresAt
		object.Status.EndedAt = g.endedAt
	}
	return object
}

// Standing returns the decisions made about the finding so far.
func (i *Item) Standing() findingstate.Standing {
	return findingstate.Standing{
		UserStatus: v1alpha1.UserStatus(i.UserStatus), Triage: i.Object().Spec.Triage, Stale: i.Stale, Facts: i.Basis,
	}
}

// V1 returns the finding's JSON in shape v1.
func (i *Item) V1() content.Part { return (*itemV1)(i) }

// V2 returns the finding's JSON in shape v2.
func (i *Item) V2() content.Part { return (*itemV2)(i) }

type itemV1 Item

// Len implements content.Part.
func (i *itemV1) Len() int { return i.rendered.LenV1(&i.Shown) }

// AppendTo implements content.Part.
func (i *itemV1) AppendTo(to []byte) []byte { return i.rendered.AppendV1(to, &i.Shown) }

type itemV2 Item

// Len implements content.Part.
func (i *itemV2) Len() int { return i.rendered.LenV2(&i.Shown) }

// AppendTo implements content.Part.
func (i *itemV2) AppendTo(to []byte) []byte { return i.rendered.AppendV2(to, &i.Shown) }

// Full returns the finding's JSON in the full shape.
func (i *Item) Full() content.Part { return (*itemFull)(i) }

type itemFull Item

// Len implements content.Part.
func (i *itemFull) Len() int { return i.rendered.LenFull(&i.Shown) }

// AppendTo implements content.Part.
func (i *itemFull) AppendTo(to []byte) []byte { return i.rendered.AppendFull(to, &i.Shown) }

// History renders the finding's history.
func (i *Item) History(importedBy func(scan string) string) ([]byte, error) {
	return render.HistoryJSON(i.ID, i.history, importedBy)
}

// Tag returns the entity tag of the shown state. It is the same for all shapes, because v1 cannot read a single
// finding: a client that read the finding in v2 may make a change in v1 conditional on it.
func (i *Item) Tag() string {
	if known := i.tag.Load(); known != nil {
		return *known
	}
	v1, full := i.V1(), i.Full() // v2 is part of the full shape
	tag := TagOf(full.AppendTo(v1.AppendTo(make([]byte, 0, v1.Len()+full.Len()))))
	i.tag.Store(&tag)
	return tag
}

// record is a resource that is shown in two shapes.
type record struct{ render.Record }

// Tag returns the entity tag of the shown state. It is the same for both shapes, so that a client that read the
// documented one may make a change conditional on it.
func (r *record) Tag() string { return TagOf(r.JSON()) }

// tagBytes is how much of the digest makes a tag: 128 bits.
const tagBytes = 16

// TagOf returns the entity tag of the state that these bytes show.
func TagOf(shown []byte) string {
	digest := sha256.Sum256(shown)
	return hex.EncodeToString(digest[:tagBytes])
}
