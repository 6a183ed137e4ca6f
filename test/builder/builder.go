// Package builder makes fixtures of every kind for tests. What a test does not name is
// valid and says nothing; a builder is used once.
package builder

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind}
}

// Time is the moment, to the second as it is stored.
func Time(at time.Time) v1alpha1.Time {
	return v1alpha1.NewTime(at.UTC().Truncate(time.Second))
}

func timePointer(at time.Time) *v1alpha1.Time {
	t := Time(at)
	return &t
}
