package triageoperation

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

const (
	// maxSetLength bounds the encoded text of all parts of an operation, in characters.
	maxSetLength = 24 << 20
	// maxSetComments bounds the previous comments in all parts of an operation, in bytes. They may compress to almost
	// nothing, and an undo holds all of them at once.
	maxSetComments = 128 << 20
)

// PartName returns the name of a part. The schema bounds the names of operations so that it is
// valid.
func PartName(operation string, index int) string { return fmt.Sprintf("%s-%03d", operation, index) }

// Parts distributes the entries over parts, each as full as possible. If all decisions together exceed what an
// operation may keep, the remaining entries are stored without their previous decisions; lost is how many
// decisions were dropped.
func Parts(operation *v1alpha1.TriageOperation, entries []Entry) (parts []*v1alpha1.TriageOperationPart, lost int32,
	err error) {
	return partsUpTo(maxSetLength, maxSetComments, operation, entries)
}

// partsUpTo is Parts for an operation that may keep that many characters, and that many bytes of previous comments.
func partsUpTo(maxLength, maxComments int, operation *v1alpha1.TriageOperation, entries []Entry) (
	parts []*v1alpha1.TriageOperationPart, lost int32, err error) {
	total, comments, n := 0, 0, v1alpha1.MaxPartEntries
	for len(entries) > 0 {
		// Start with twice the size of the last part: starting with all entries for each part would take minutes
		// with long comments.
		n = min(2*n, len(entries), v1alpha1.MaxPartEntries)
		if total > maxLength || comments > maxComments {
			n = min(len(entries), v1alpha1.MaxPartEntries)
			lost += forget(entries[:n])
		}
		text, fits, err := Encode(entries[:n])
		for ; err == nil && !fits && n > 1; text, fits, err = Encode(entries[:n]) {
			n /= 2
		}
		if err == nil && !fits {
			lost += forget(entries[:n])
			text, _, err = Encode(entries[:n])
		}
		if err != nil {
			return nil, 0, err
		}
		total, comments = total+len(text), comments+commentBytes(entries[:n])
		parts, entries = append(parts, part(operation, len(parts), n, text)), entries[n:]
	}
	return parts, lost, nil
}

// commentBytes returns the length of the previous comments.
func commentBytes(entries []Entry) (sum int) {
	for i := range entries {
		if before := entries[i].Before; before != nil {
			sum += len(before.Comments)
		}
	}
	return sum
}

// forget drops the previous decisions, and returns how many there were.
func forget(entries []Entry) (lost int32) {
	for i := range entries {
		if entries[i].Before != nil {
			entries[i].Before, entries[i].Basis, entries[i].Lost = nil, "", true
			lost++
		}
	}
	return lost
}

func part(operation *v1alpha1.TriageOperation, index, count int, text string) *v1alpha1.TriageOperationPart {
	return &v1alpha1.TriageOperationPart{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: operation.Namespace, Name: PartName(operation.Name, index),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "TriageOperation", Name: operation.Name, UID: operation.UID,
			}},
		},
		Spec: v1alpha1.TriageOperationPartSpec{
			Operation: v1alpha1.ResourceName(operation.Name), Index: int32(index), Count: int32(count), //nolint:gosec // bounded
			Entries: text,
		},
	}
}
