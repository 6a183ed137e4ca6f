package review

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestARemovalWaitsForRefusalsThatMayPass(t *testing.T) {
	refuses := func(why string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "webhookdeliveries"}, "d", errors.New(why))
	}
	for _, c := range []struct {
		reason     string
		err        error
		deletedFor time.Duration
		want       bool
	}{
		{"no error", nil, time.Hour, false},
		{"a quota, which may stay full", refuses("exceeded quota: deliveries"), 0, true},
		{"a starting API server", refuses("not yet ready to handle request"), refusalPatience, false},
		{"a missing right", refuses("not yet ready to handle request"), refusalPatience + time.Second, true},
		{"an outage, however long", errors.New("connection refused"), time.Hour, false},
	} {
		harness.Same(t, c.reason, c.want, blocks(c.err, c.deletedFor))
	}
}
