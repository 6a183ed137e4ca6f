package ledger

import (
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/transitions"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// The kinds that record transitions.
var (
	Finding = paged(kindOf("Finding", webhooks.FindingEventPrefix, &v1alpha1.Finding{}, &v1alpha1.FindingList{},
		func(f *v1alpha1.Finding) Book { return Book{&f.Status.Transitions, &f.Status.EmittedSeq} }, webhooks.DataOfFinding))
	Scan = kindOf("Scan", webhooks.ScanEventPrefix, &v1alpha1.Scan{}, &v1alpha1.ScanList{},
		func(s *v1alpha1.Scan) Book { return Book{&s.Status.Transitions, &s.Status.EmittedSeq} }, webhooks.DataOfScan)
	Review = kindOf("Review", webhooks.ReviewEventPrefix, &v1alpha1.Review{}, &v1alpha1.ReviewList{},
		func(r *v1alpha1.Review) Book { return Book{&r.Status.Transitions, &r.Status.EmittedSeq} }, webhooks.DataOfReview)
	ReviewIssue = kindOf("ReviewIssue", webhooks.ReviewIssueEventPrefix, &v1alpha1.ReviewIssue{},
		&v1alpha1.ReviewIssueList{},
		func(i *v1alpha1.ReviewIssue) Book { return Book{&i.Status.Transitions, &i.Status.EmittedSeq} },
		webhooks.DataOfReviewIssue)
)

var kinds = []Kind{Finding, Scan, Review, ReviewIssue}

// HistoryOf returns the object's transitions; an empty history for kinds without.
func HistoryOf(object client.Object) transitions.History {
	for _, kind := range kinds {
		if reflect.TypeOf(kind.object) == reflect.TypeOf(object) {
			return kind.book(object).history()
		}
	}
	return transitions.History{}
}

// NewSubject returns an empty object of the kind; nil for a kind without transitions.
func NewSubject(name string) client.Object {
	for _, kind := range kinds {
		if kind.name == name {
			return kind.object.DeepCopyObject().(client.Object)
		}
	}
	return nil
}

// Kind describes a kind to its ledger.
type Kind struct {
	// name is that of the kind, prefix that of the types of its events: "ReviewIssue", "review_issue".
	name, prefix string
	// object and list are empty values of the kind.
	object client.Object
	list   client.ObjectList
	// book returns pointers to the transitions in an object's status.
	book func(client.Object) Book
	// data returns the payload's data for a transition: identifiers and what has changed.
	data func(client.Object, v1alpha1.Transition) any
	// paged means that transitions made by a scan, an operation or a policy may go to an endpoint in pages, which a Pager
	// makes.
	paged bool
}

func kindOf[O client.Object, D any](
	name, prefix string, object O, list client.ObjectList, book func(O) Book, data func(O, v1alpha1.Transition) D,
) Kind {
	return Kind{
		name: name, prefix: prefix, object: object, list: list,
		book: func(object client.Object) Book { return book(object.(O)) },
		data: func(object client.Object, t v1alpha1.Transition) any { return data(object.(O), t) },
	}
}

func paged(kind Kind) Kind {
	kind.paged = true
	return kind
}

// Book points to the transitions in a status.
type Book struct {
	Transitions *[]v1alpha1.Transition
	EmittedSeq  *int64
}

func (b Book) history() transitions.History {
	return transitions.Of(*b.Transitions, *b.EmittedSeq)
}

// emitted records that all deliveries up to that seq were made, and drops emitted transitions beyond MaxTransitions.
func (b Book) emitted(seq int64) {
	*b.EmittedSeq = seq
	*b.Transitions = b.history().Trim()
}
