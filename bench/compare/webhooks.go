package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/bench/internal/report"
)

const (
	// decisionsSent is the number of decisions in a round; sentInShort that of a short run.
	decisionsSent   = 256
	sentInShort     = 64
	maxWebhookRound = 5
	// deliveredTimeout bounds the deliveries of a round.
	deliveredTimeout = 5 * time.Minute
	receiverTimeout  = 30 * time.Second

	decideSide    = "decisions written by client-go, controllers halted"
	reconcileSide = "reconciles, no endpoint"
	deliverSide   = "deliveries, 1 endpoint"
	fanOutSide    = "deliveries, 4 endpoints"
)

var webhookSides = []string{decideSide, reconcileSide, deliverSide, fanOutSide}

// decidedBefore names the decisions of the rounds of a side.
func decidedBefore(side string) string { return "decisions before " + side }

// fannedOut is the number of endpoints that receive each event in the fan-out.
const fannedOut = 4

// webhooks measures how fast events are recorded and sent.
func webhooks(ctx context.Context, b *bench.Bench, f *bench.Fixture) (section *report.Section, err error) {
	h, err := newHooks(ctx, b, f)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.close(ctx)) }()
	results := measure.Results{}
	for _, endpoints := range []int{0, 1, fannedOut} {
		if err := h.listen(ctx, endpoints); err != nil {
			return nil, err
		}
		rounds := min(b.Plan.Rounds, maxWebhookRound)
		b.Say("webhooks: %d endpoints, %d rounds", endpoints, rounds)
		for round := range rounds + 1 {
			found, err := h.round(ctx, endpoints)
			if err != nil {
				return nil, fmt.Errorf("%d endpoints: %w", endpoints, err)
			}
			if round > 0 {
				results.Add(found)
			}
		}
	}
	return h.section(results), nil
}

const webhooksText = "Decisions are written with client-go while the controllers' process is stopped by a signal. Then the process goes on. The time runs until it has reconciled each finding, " +
	"or until the last delivery has reached a receiver on the loopback interface. Nothing else is written meanwhile. Each delivery is recorded before and after it is sent; " +
	"[performance-etcd](../performance-etcd.md) counts these writes. Ratios are to the decisions of the same round, one write each."

func (h *hooks) section(results measure.Results) *report.Section {
	section := &report.Section{Title: "Reconciles and webhooks", Text: webhooksText}
	table := report.Table{
		Title:   fmt.Sprintf("%d decisions a round, beside %s findings:", h.count, thousands(h.Size)),
		Columns: []string{"What", "a second", "of the decisions' rate", "CPU of all for one"},
	}
	for _, side := range webhookSides {
		ratio := "1"
		if side != decideSide {
			ratio = fmt.Sprintf("%.2f", results.Ratio(side, decidedBefore(side)).Median)
			section.Rows = append(section.Rows,
				report.Row{Measure: side + ", per second", Measured: fmt.Sprintf("%.0f", results.Rate(side)), Key: true})
		}
		table.Rows = append(table.Rows, []string{side, fmt.Sprintf("%.0f", results.Rate(side)), ratio,
			milliseconds(results.CPU(side))})
	}
	section.Tables = []report.Table{table}
	section.Charts = []report.Chart{{Title: "What follows from a decision", Unit: "a second",
		Groups: []report.Group{rateGroup(results, webhookSides)}}}
	return section
}

// hooks holds the endpoints, and the decider that causes events.
type hooks struct {
	*bench.Fixture
	bench    *bench.Bench
	receiver *receiver
	decider  *decider
	findings []string
	count    int
	number   int
}

func newHooks(ctx context.Context, b *bench.Bench, f *bench.Fixture) (*hooks, error) {
	h := &hooks{Fixture: f, bench: b, count: decisionsSent}
	if b.Short {
		h.count = sentInShort
	}
	var err error
	if h.decider, err = newTriager(ctx, f.Plane, f.Organization.Namespace, "kubectl-patch"); err != nil {
		return nil, err
	}
	if h.findings, err = findingNames(f, decidedFindings); err != nil {
		return nil, err
	}
	h.count = min(h.count, len(h.findings))
	h.receiver, err = newReceiver(ctx, 0, nil)
	return h, err
}

// listen gives the organization count endpoints.
func (h *hooks) listen(ctx context.Context, count int) error {
	if err := h.removeEndpoints(ctx); err != nil {
		return err
	}
	for i := range count {
		if err := makeEndpoint(ctx, h.Fixture, fmt.Sprintf("bench-%d", i), h.receiver.url(i), "finding.triaged"); err != nil {
			return err
		}
	}
	return nil
}

// makeEndpoint gives the organization an endpoint for the events, and waits until it is ready. The controllers must
// run.
func makeEndpoint(ctx context.Context, f *bench.Fixture, name, url string,
	events ...v1alpha1.WebhookEventPattern) error {
	endpoint := &v1alpha1.WebhookEndpoint{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Organization.Namespace, Name: name},
		Spec:       v1alpha1.WebhookEndpointSpec{URL: url, Events: events},
	}
	if err := f.Client.Create(ctx, endpoint); err != nil {
		return err
	}
	return eventually(ctx, settleInterval, deliveredTimeout, func(ctx context.Context) error {
		err := f.Client.Get(ctx, client.ObjectKeyFromObject(endpoint), endpoint)
		if err == nil && !v1alpha1.IsConditionTrue(endpoint.Status.Conditions, v1alpha1.ConditionReady) {
			err = fmt.Errorf("webhook endpoint %s is not ready", endpoint.Name)
		}
		return err
	})
}

// round writes decisions while the controllers are halted, resumes them, and waits for all consequences.
func (h *hooks) round(ctx context.Context, endpoints int) (map[string]measure.Sample, error) {
	side := map[int]string{0: reconcileSide, 1: deliverSide, fannedOut: fanOutSide}[endpoints]
	if err := h.bench.Collected(ctx, h.Fixture); err != nil {
		return nil, err
	}
	// A halted process does not serve metrics.
	before, err := reconciledBy(ctx, h.Controller)
	if err != nil {
		return nil, err
	}
	// A restart instead would have them reconcile every finding in each round.
	if err := h.Controller.Freeze(); err != nil {
		return nil, err
	}
	from := h.number
	h.number += h.count
	decided, err := measure.Once(ctx, servers(h.Fixture), func(ctx context.Context) (int, error) {
		_, err := callAll(ctx, busyWriters, h.count, func(ctx context.Context, i int) error {
			return h.decider.write(ctx, newDecision(h.findings, "webhooks", from+i))
		})
		return h.count, err
	})
	if err != nil {
		return nil, err
	}
	followed, err := measure.Once(ctx, append(servers(h.Fixture), h.Controller.PID()),
		func(ctx context.Context) (int, error) { return h.follow(ctx, endpoints, before) })
	if err != nil {
		return nil, err
	}
	if err := waitIdle(ctx, h.Fixture); err != nil {
		return nil, err
	}
	return map[string]measure.Sample{decideSide: decided, decidedBefore(side): decided, side: followed}, nil
}

// follow resumes the controllers, waits until they have processed all decisions, and returns how many reconciles or
// deliveries that took: before is the number of findings they had reconciled earlier.
func (h *hooks) follow(ctx context.Context, endpoints int, before float64) (int, error) {
	h.receiver.reset()
	if err := h.Controller.Thaw(); err != nil {
		return 0, err
	}
	if endpoints == 0 {
		return h.count, eventually(ctx, time.Millisecond*10, deliveredTimeout, func(ctx context.Context) error {
			now, err := reconciledBy(ctx, h.Controller)
			if err == nil && now-before < float64(h.count) {
				err = fmt.Errorf("%.0f of %d findings were looked at", now-before, h.count)
			}
			return err
		})
	}
	wanted := h.count * endpoints
	return wanted, eventually(ctx, time.Millisecond, deliveredTimeout, func(context.Context) error {
		if arrived := h.receiver.arrived(); arrived < wanted {
			return fmt.Errorf("of %d deliveries only %d arrived", wanted, arrived)
		}
		return nil
	})
}

func (h *hooks) removeEndpoints(ctx context.Context) error {
	if err := removeAll(ctx, h.Fixture, []client.Object{&v1alpha1.WebhookEndpoint{}, &v1alpha1.WebhookDelivery{}}); err != nil {
		return err
	}
	// The name can be reused only once the old endpoint is gone.
	return eventually(ctx, settleInterval, deliveredTimeout, func(ctx context.Context) error {
		list := &v1alpha1.WebhookEndpointList{}
		err := h.Client.List(ctx, list, client.InNamespace(h.Organization.Namespace))
		if n := len(list.Items); n > 0 {
			err = fmt.Errorf("%d webhook endpoints are still there", n)
		}
		return err
	})
}

func (h *hooks) close(ctx context.Context) error {
	return errors.Join(h.Controller.Thaw(), h.removeEndpoints(ctx), h.receiver.close())
}
