package policies

import (
	"errors"
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// An object is judged again if its verdict is another or unknown because of a panic, but not if a read fails, which is
// reported instead.
func TestAVerdictDiffersUnlessItIsTheSameOrCannotBeRead(t *testing.T) {
	muted := &v1alpha1.FindingVerdict{Policy: "p", UserStatus: v1alpha1.PolicyStatus(v1alpha1.UserStatusMuted)}
	stopped := errors.New("the cache has stopped")
	for reason, c := range map[string]struct {
		judge   func() (*v1alpha1.FindingVerdict, error)
		differs bool
		err     error
	}{
		"the same":      {func() (*v1alpha1.FindingVerdict, error) { return muted.DeepCopy(), nil }, false, nil},
		"none any more": {func() (*v1alpha1.FindingVerdict, error) { return nil, nil }, true, nil},
		"a failed read": {func() (*v1alpha1.FindingVerdict, error) { return nil, stopped }, false, stopped},
		"a panic":       {func() (*v1alpha1.FindingVerdict, error) { panic("no such policy") }, true, nil},
	} {
		differs, err := Differs(c.judge, muted)
		harness.Same(t, reason+": differs", c.differs, differs)
		if !errors.Is(err, c.err) {
			t.Errorf("%s: error %v, want %v", reason, err, c.err)
		}
	}
}
