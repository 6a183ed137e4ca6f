// Package kinds tests controllers that need no more than an API server: those of projects, repositories, reviews and
// their issues, the key of cursors, and the rotation of the signing key with two replicas of the REST API.
package kinds

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/appsec-dev/findings-operator/test/testenv"
)

var env *testenv.Environment

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	testenv.Main(m, &env)
}

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func at(minute int) time.Time { return noon.Add(time.Duration(minute) * time.Minute) }
