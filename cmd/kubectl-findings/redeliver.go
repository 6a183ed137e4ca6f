package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

const redeliverLong = `Send webhook deliveries again.

The same event is sent with the same webhook-id, so a receiver that already has it recognises it. Name the deliveries,
or select them with filters: --failed selects those in the phase Failed, with no attempt left, or an endpoint that was
deleted or disabled for 30 days. Deliveries of a deleted endpoint are not sent again. The selection is shown first, and
nothing is sent until you confirm or pass --yes.

With --wait the command ends when every delivery was delivered, has failed again, or is not sent
because its endpoint is disabled.`

const redeliverExample = `  # One delivery, waiting for the result
  kubectl findings redeliver d-6c2ogq5d4kq2ztyinkx7m5ya2e --wait

  # Everything that a receiver missed while it was down
  kubectl findings redeliver --endpoint dashboard --failed

  # Preview what that would send
  kubectl findings redeliver --endpoint dashboard --failed --dry-run`

// Selectable fields of a delivery.
const (
	fieldEndpoint  = "spec.endpointRef.name"
	fieldEventType = "spec.event.type"
	fieldSubject   = "spec.event.subject.name"
	fieldPhase     = "status.phase"
)

var selectableOfDeliveries = []string{fieldEndpoint, fieldEventType, fieldSubject, fieldPhase}

// phaseChoice is the only choice, because newer versions of the service may have types of events that this one does not
// know.
var phaseChoice = choice{field: fieldPhase,
	values: words(v1alpha1.WebhookDeliveryPending, v1alpha1.WebhookDeliveryDelivered, v1alpha1.WebhookDeliveryFailed)}

type redeliverOptions struct {
	cli

	endpoint       string
	failed         bool
	labels, fields string
	dryRun         bool
	yes, wait      bool
	timeout        time.Duration
	concurrency    int
	output         string
	quiet          bool
}

func newRedeliverCommand(c cli) *cobra.Command {
	o := &redeliverOptions{cli: c}
	cmd := &cobra.Command{
		Use:     "redeliver (NAME... | --endpoint NAME --failed | -l SELECTOR)",
		Short:   "Send webhook deliveries again",
		Long:    redeliverLong,
		Example: redeliverExample,
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.run(cmd.Context(), names)
		},
		ValidArgsFunction: completeNames(c, "WebhookDelivery", deliveryDescription),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.endpoint, "endpoint", "", "only deliveries to this WebhookEndpoint")
	flags.BoolVar(&o.failed, "failed", false,
		"only deliveries in the phase Failed: no attempt is left, or the endpoint was deleted or disabled for 30 days")
	addSelectorFlags(flags, &o.labels, &o.fields, "spec.event.type=finding.created,status.phase!=Delivered")
	flags.BoolVar(&o.dryRun, "dry-run", false, "show what would be sent again, and send nothing")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	flags.BoolVar(&o.wait, "wait", false, "wait until each was delivered or has failed")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long to wait in total")
	flags.IntVar(&o.concurrency, "concurrency", defaultConcurrency, "how many deliveries are written at the same time")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "show no progress and no preview")
	completeFlagNames(cmd, "endpoint", c, "WebhookEndpoint")
	addSummaryOutput(cmd, &o.output, bulkFormats)
	return cmd
}

func (o *redeliverOptions) run(ctx context.Context, names []string) error {
	unfiltered := o.endpoint+o.labels+o.fields == "" && !o.failed
	_, err := o.options("")
	err = errors.Join(err, checkSelection(names, unfiltered, "deliveries"), checkConcurrency(o.concurrency),
		checkOutput(o.output, bulkFormats), checkTimeout(o.timeout))
	if err != nil {
		return err
	}
	session, err := o.open()
	if err != nil {
		return err
	}
	var targets []target
	for _, name := range bare("WebhookDelivery", names...) {
		targets = append(targets, target{name: name})
	}
	if len(names) == 0 {
		var preview []row
		if targets, preview, err = o.choose(ctx, session); err != nil {
			return err
		}
		if len(targets) == 0 {
			if err := session.checkAsked(ctx, need{kind: "WebhookEndpoint", name: o.endpoint}); err != nil {
				return err
			}
			fmt.Fprintln(o.streams.ErrOut, nothingMatches)
		}
		if agreed, err := o.agree(ctx, session.namespace, preview, len(targets)); !agreed || err != nil {
			return err
		}
	}
	return o.redeliver(ctx, session, targets)
}

// options returns the options of the list of deliveries that match.
func (o *redeliverOptions) options(namespace string) (client.ListOptions, error) {
	var terms []fields.Selector
	if o.endpoint != "" {
		terms = append(terms, fields.OneTermEqualSelector(fieldEndpoint, o.endpoint))
	}
	if o.failed {
		terms = append(terms, fields.OneTermEqualSelector(fieldPhase, string(v1alpha1.WebhookDeliveryFailed)))
	}
	options, err := selectors(namespace, o.labels, o.fields, terms...)
	if err == nil {
		err = checkChoices(options.FieldSelector, phaseChoice)
	}
	return options, err
}

// target is a delivery to send again. Its immutable endpoint is not known yet if the user named the delivery.
type target struct {
	name     string
	endpoint v1alpha1.WebhookEndpointReference
}

// choose returns the deliveries that match, and the rows of a preview of the first ones.
func (o *redeliverOptions) choose(ctx context.Context, s *session) (targets []target, preview []row, err error) {
	options, err := o.options(s.namespace)
	if err != nil {
		return nil, nil, err
	}
	noteUnknownEvents(s.errOut, options.FieldSelector)
	err = s.eachPage(ctx, "WebhookDelivery", 0, options, func(items []unstructured.Unstructured) error {
		for _, d := range readable[v1alpha1.WebhookDelivery](s, items) {
			targets = append(targets, target{d.Name, d.Spec.EndpointRef})
			if len(preview) == maxPreviewed {
				continue
			}
			preview = append(preview, row{
				d.Name, string(d.Spec.EndpointRef.Name), d.Spec.Event.Type, string(d.Spec.Event.Subject.Name),
				string(d.Status.Phase), strconv.Itoa(len(d.Status.Attempts)),
			})
		}
		return nil
	})
	switch {
	case errors.Is(err, context.Canceled):
		return nil, nil, errInterrupted
	case apierrors.IsBadRequest(err) && o.fields != "":
		return nil, nil, fmt.Errorf("%w\n%s", err, selectedBy("Deliveries", selectableOfDeliveries))
	}
	return targets, preview, s.explain(err, need{what: "list webhook deliveries", role: roleViewer})
}

// noteUnknownEvents names types of events that this version does not know. That is no error, but they may be misspelt.
func noteUnknownEvents(to io.Writer, selector fields.Selector) {
	known := webhooks.DeliveredTypes()
	for _, term := range selector.Requirements() {
		if term.Field != fieldEventType || slices.Contains(known, term.Value) {
			continue
		}
		note := fmt.Sprintf("%s is %q, which this version does not know", fieldEventType, term.Value)
		if near := similar(term.Value, known); len(near) > 0 {
			note += ": did you mean " + strings.Join(near, " or ") + "?"
		}
		fmt.Fprintln(to, note)
	}
}

// agree shows which of the n deliveries would be sent again and asks for confirmation.
func (o *redeliverOptions) agree(ctx context.Context, namespace string, preview []row, n int) (bool, error) {
	if n > 0 && !o.quiet {
		if err := previewDeliveries(o.streams.ErrOut, preview, n); err != nil {
			return false, err
		}
	}
	if n == 0 || o.dryRun {
		return true, nil
	}
	agreed, err := confirm(ctx, o.streams, o.yes, fmt.Sprintf("redeliver %d deliveries in namespace %s", n, namespace))
	if !agreed && err == nil {
		fmt.Fprintln(o.streams.ErrOut, "nothing was sent")
	}
	return agreed, err
}

func previewDeliveries(to io.Writer, rows []row, n int) error {
	columns := []column{{name: "Name"}, {name: "Endpoint"}, {name: "Event"}, {name: "Subject"}, {name: "Phase"},
		{name: "Attempts"}}
	if err := printTable(to, columns, rows, printers.PrintOptions{}); err != nil {
		return err
	}
	unlisted(to, n-len(rows))
	return nil
}

// redeliver requests all redeliveries first and then waits for each, so that one that hangs does not delay the others.
// It reads the deliveries whose endpoints are unknown.
func (o *redeliverOptions) redeliver(ctx context.Context, s *session, targets []target) error {
	summary := &bulkSummary{
		Action: "requested", Namespace: s.namespace, what: "redeliveries", resource: "webhookdelivery.appsec.dev",
	}
	value, uidOf := uuid.NewString(), uids(ctx, s)
	progress := newProgress(o.streams.ErrOut, o.quiet, "deliveries")
	outcomes := forEach(ctx, len(targets), o.concurrency, progress.at, func(i int) (bool, error) {
		return true, o.ask(ctx, s, targets[i], value, uidOf)
	})
	progress.finish()
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = t.name
	}
	if o.dryRun {
		summary.DryRun = dryRunClient
	} else if o.wait {
		summary.Action = "delivered"
		o.await(ctx, s, names, outcomes, value)
	}
	summary.count(names, outcomes)
	return summary.conclude(ctx, s, o.streams.Out, o.output,
		need{what: "redeliver webhooks", role: roleTriager, kind: "WebhookDelivery"})
}

// ask sets a new value of the delivery's annotation; the controller then redelivers it, unless its endpoint was
// deleted.
func (o *redeliverOptions) ask(ctx context.Context, s *session, t target, value string, uidOf uidReader) error {
	d := &v1alpha1.WebhookDelivery{}
	d.Namespace, d.Name, d.Spec.EndpointRef = s.namespace, t.name, t.endpoint
	if d.Spec.EndpointRef.Name == "" {
		if err := withRetries(ctx, func() error { return s.get(ctx, d.Name, d) }); err != nil {
			return err
		}
	}
	if err := checkEndpoint(d, uidOf); err != nil || o.dryRun {
		return err
	}
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{v1alpha1.RedeliverAnnotation: value}},
	})
	if err != nil {
		return err
	}
	return withRetries(ctx, func() error { return s.patch(ctx, d, client.RawPatch(types.MergePatchType, data)) })
}

// checkEndpoint returns an error if the delivery's endpoint was deleted, because the controller then sends nothing. The
// delivery's status may not show that yet.
func checkEndpoint(d *v1alpha1.WebhookDelivery, uidOf uidReader) error {
	ref := d.Spec.EndpointRef
	if ref.UID == "" {
		return nil // the delivery is for any endpoint of that name
	}
	uid, err := uidOf(string(ref.Name))
	switch {
	case apierrors.IsForbidden(err):
		return nil // the controller decides
	case err != nil:
		return fmt.Errorf("get webhook endpoint %s: %w", ref.Name, err)
	case string(uid) != ref.UID:
		return fmt.Errorf("it is not sent again: its WebhookEndpoint %q was deleted, and a new endpoint of the same name "+
			"does not receive earlier events", ref.Name)
	}
	return nil
}

// uidReader returns the UID of the WebhookEndpoint of that name; "" if it does not exist.
type uidReader func(name string) (types.UID, error)

// uids returns a uidReader that reads each endpoint once.
func uids(ctx context.Context, s *session) uidReader {
	var mu sync.Mutex
	reads := map[string]func() (types.UID, error){}
	return func(name string) (types.UID, error) {
		mu.Lock()
		if reads[name] == nil {
			reads[name] = sync.OnceValues(func() (types.UID, error) {
				endpoint := kube.MetadataOf(v1alpha1.GroupVersion.WithKind("WebhookEndpoint"))
				err := withRetries(ctx, func() error { return s.get(ctx, name, endpoint) })
				return endpoint.UID, kube.IgnoreNotFound(err)
			})
		}
		read := reads[name]
		mu.Unlock()
		return read()
	}
}
