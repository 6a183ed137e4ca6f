// Package builder creates fixtures of every kind for tests. Fields that a test does not set are
// valid and carry no information. A builder is used once.
package builder

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind}
}

// Time returns the time truncated to seconds, as it is stored.
func Time(at time.Time) v1alpha1.Time {
	return v1alpha1.NewTime(at.UTC().Truncate(time.Second))
}

func timePointer(at time.Time) *v1alpha1.Time {
	t := Time(at)
	return &t
}
