package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// triager writes the same decision to findings, or to issues.
type triager struct {
	session  *session
	decision decision
	// dryRun is dryRunNone, dryRunClient or dryRunServer.
	dryRun string
}

func (t *triager) decideAboutFinding(ctx context.Context, name string) (changed bool, err error) {
	f := &v1alpha1.Finding{}
	return t.decideAbout(ctx, name, f, func() verdict { return verdictOf(f) })
}

// decideAbout writes the decision to one object, unless it changes nothing; current returns the object's verdict. If
// the response is lost, it does not overwrite a decision that somebody has made since.
func (t *triager) decideAbout(ctx context.Context, name string, object client.Object,
	current func() verdict) (changed bool, err error) {
	var unanswered *verdict // the verdict before a write without a response
	unknown := false        // no read since that write has shown whether it is stored
	err = withRetries(ctx, func() error {
		// Decoding would keep what is not in the response.
		if err := runtime.SetZeroValue(object); err != nil {
			return err
		}
		if err := t.session.get(ctx, name, object); err != nil {
			unknown = unknown && !kube.IsNotFound(err)
			return err
		}
		unknown = false
		is := current()
		if unanswered != nil && !reflect.DeepEqual(is.Triage, unanswered.Triage) {
			err := t.errUnlessStored(is)
			changed = err == nil
			return err
		}
		if !t.decision.changes(is) {
			return nil
		}
		err := t.write(ctx, object, is)
		if t.dryRun == dryRunNone && kube.IsOutcomeUnknown(err) {
			unanswered, unknown = &is, true
		}
		changed = err == nil
		return err
	})
	if unknown {
		err = t.errUnknown(err, name, object)
	}
	return changed, err
}

// errUnknown returns err with what to do if a decision may have been stored. It wraps no cancellation: forEach does not
// count what one ends.
func (t *triager) errUnknown(err error, name string, object client.Object) error {
	if errors.Is(err, context.Canceled) {
		err = errors.New(err.Error())
	}
	kind, _ := kube.KindOf(object)
	return fmt.Errorf("it is not known whether the decision was stored: check with `%s -o yaml` "+
		"at the API server %s before you decide again: %w",
		t.session.command("get", strings.ToLower(kind.Name), name), t.session.server(), err)
}

// errUnlessStored returns an error unless the stored decision is the one that may have been written.
func (t *triager) errUnlessStored(is verdict) error {
	is.Stale = false // a scan may have changed the facts meanwhile
	if !t.decision.changes(is) {
		return nil
	}
	return fmt.Errorf("%s has decided about it in the meantime, and the API server's answer to this decision was lost: "+
		"decide again if the other decision should not stay", cmp.Or(is.Triage.By, "somebody"))
}

func (t *triager) write(ctx context.Context, object client.Object, is verdict) error {
	if t.dryRun == dryRunClient {
		return nil
	}
	patch, err := t.decision.patch(is, object.GetResourceVersion())
	if err != nil {
		return err
	}
	var options []client.PatchOption
	if t.dryRun == dryRunServer {
		options = append(options, client.DryRunAll)
	}
	return t.session.patch(ctx, object, patch, options...)
}
