package main

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// bareWatch is a client-go watch of findings that reports when expected decisions arrive.
type bareWatch struct {
	watch watch.Interface
	// shows reports whether a finding with the expected decision counts.
	shows   func(*v1alpha1.Finding) bool
	arrived *arrivals
}

// asWritten counts a decision as soon as the watch brings it; asRecorded once the finding's status records it.
func asWritten(*v1alpha1.Finding) bool { return true }

func asRecorded(finding *v1alpha1.Finding) bool {
	return finding.Status.ObservedGeneration == finding.Generation
}

// watchBare starts a watch of the findings that the decider decides about, and waits at most that long for each
// expected decision. The caller calls stop.
func watchBare(ctx context.Context, d *decider, shows func(*v1alpha1.Finding) bool,
	patience time.Duration) (*bareWatch, error) {
	latest := &v1alpha1.FindingList{}
	if err := d.client.Get().Namespace(d.namespace).Resource("findings").
		VersionedParams(&metav1.ListOptions{Limit: 1}, metav1.ParameterCodec).Do(ctx).Into(latest); err != nil {
		return nil, err
	}
	begun, err := d.client.Get().Namespace(d.namespace).Resource("findings").
		VersionedParams(&metav1.ListOptions{Watch: true, ResourceVersion: latest.ResourceVersion},
			metav1.ParameterCodec).Watch(ctx)
	if err != nil {
		return nil, err
	}
	w := &bareWatch{watch: begun, shows: shows, arrived: newArrivals("a watch of findings", patience)}
	go w.receive()
	return w, nil
}

func (w *bareWatch) stop() { w.watch.Stop() }

func (w *bareWatch) receive() {
	for event := range w.watch.ResultChan() {
		if finding, ok := event.Object.(*v1alpha1.Finding); ok && w.shows(finding) {
			w.arrived.came(watchedName(finding.Name, finding.Spec.Triage.Comments), time.Now())
		}
	}
}

// expect waits for a decision that is made from now on; seen returns the time when the watch received it.
func (w *bareWatch) expect(d decision) (seen func(context.Context) (time.Time, error)) {
	return w.arrived.expect(watchedName(d.finding, d.comments))
}

func watchedName(finding, comments string) string { return "finding " + finding + ": " + comments }
