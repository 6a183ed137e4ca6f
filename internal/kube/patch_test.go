package kube

import (
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestAMergePatchAlwaysHoldsTheResourceVersion(t *testing.T) {
	patch, err := MergePatch("7", "spec", 1)
	harness.Must(t, err)
	harness.Same(t, "patch", `{"metadata":{"resourceVersion":"7"},"spec":1}`, string(patch))
}
