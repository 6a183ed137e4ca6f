package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// bareWatch is a client-go watch of findings that reports when an expected change arrives.
type bareWatch struct {
	watch watch.Interface

	mu       sync.Mutex
	expected decision
	seen     chan time.Time
}

// watchBare starts a watch of the namespace's findings. The caller calls stop.
func watchBare(ctx context.Context, config *rest.Config, namespace string) (*bareWatch, error) {
	client, err := kube.NewClient(config)
	if err != nil {
		return nil, err
	}
	latest := &v1alpha1.FindingList{}
	if err := client.Get().Namespace(namespace).Resource("findings").
		VersionedParams(&metav1.ListOptions{Limit: 1}, metav1.ParameterCodec).Do(ctx).Into(latest); err != nil {
		return nil, err
	}
	begun, err := client.Get().Namespace(namespace).Resource("findings").
		VersionedParams(&metav1.ListOptions{Watch: true, ResourceVersion: latest.ResourceVersion},
			metav1.ParameterCodec).Watch(ctx)
	if err != nil {
		return nil, err
	}
	w := &bareWatch{watch: begun}
	go w.receive()
	return w, nil
}

func (w *bareWatch) stop() { w.watch.Stop() }

func (w *bareWatch) receive() {
	for event := range w.watch.ResultChan() {
		if finding, ok := event.Object.(*v1alpha1.Finding); ok {
			w.take(finding, time.Now())
		}
	}
}

func (w *bareWatch) take(finding *v1alpha1.Finding, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen == nil || finding.Name != w.expected.finding || finding.Spec.Triage.Comments != w.expected.comments {
		return
	}
	w.seen <- at // the channel's buffer has room for it
	w.seen = nil
}

// expect waits for one decision that is made from now on; seen returns the time when the watch
// received it.
func (w *bareWatch) expect(d decision) (seen func(context.Context) (time.Time, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	came := make(chan time.Time, 1)
	w.expected, w.seen = d, came
	return func(ctx context.Context) (time.Time, error) {
		select {
		case at := <-came:
			return at, nil
		case <-time.After(probeTimeout):
			return time.Time{}, fmt.Errorf("a watch has not brought the change of finding %s in %s", d.finding, probeTimeout)
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		}
	}
}
