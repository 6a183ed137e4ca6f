package readmodel

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// A finding that is rendered when it arrives is not rendered again.
func TestAListedFindingIsRenderedAsItComes(t *testing.T) {
	m, _ := newTestModel(t)
	prepared, ok := m.rendered(finding("f-1", 10)).(*preparedFinding)
	if !ok || prepared.Name != "f-1" || prepared.stored == nil {
		t.Errorf("got %+v", prepared)
	}
	var _ kube.Object = prepared
}

// All kinds are listed at the same time, but the kinds that findings are joined with are applied before them.
func TestListsAreHeardInOrder(t *testing.T) {
	m, _ := newTestModel(t)
	before := make(chan struct{})
	s := &store{model: m, kind: findings, before: before, listed: make(chan struct{}), done: t.Context().Done()}
	heard := make(chan error, 1)
	go func() { heard <- s.Replace(nil, "5") }()
	select {
	case err := <-heard:
		t.Fatal(err, "findings were heard before the kinds they are joined with")
	case <-time.After(20 * time.Millisecond):
	}
	close(before)
	harness.Must(t, <-heard)
	select {
	case <-s.listed:
	default:
		t.Error("the next kind would wait forever")
	}
}

func TestAListThatNobodyWaitsForAnyMoreIsNotHeard(t *testing.T) {
	m, _ := newTestModel(t)
	done := make(chan struct{})
	close(done)
	s := &store{model: m, kind: findings, before: make(chan struct{}), listed: make(chan struct{}), done: done}
	if err := s.Replace(nil, "5"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
