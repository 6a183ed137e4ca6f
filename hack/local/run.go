package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// run starts everything, prints how to call it, and stops everything when the context ends.
func run(outer context.Context, o options, out io.Writer) (err error) {
	started := time.Now()
	ctx, giveUp := context.WithCancelCause(outer)
	defer giveUp(nil)
	say := newReporter(out)
	lock, err := lockRunDir(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := errors.Join(os.RemoveAll(o.state("env")), removePIDs(o.state("pids"))); err != nil {
		return err
	}
	if err := checkPort(ctx, o.port); err != nil {
		return err
	}
	keys, err := loadPKI(o)
	if err != nil {
		return err
	}

	children := &supervisor{options: o, say: say, giveUp: giveUp}
	var made *samples
	defer func() {
		say("stopping (up to a minute under load; Ctrl-C again ends at once) ...")
		err = errors.Join(err, os.RemoveAll(o.state("env")), children.stopAll(), made.stop(), removePIDs(o.state("pids")))
		say("stopped; the data is kept in %s", o.runDir)
	}()

	var url string
	if url, made, err = bringUp(ctx, o, keys, children, say); err != nil {
		if ctx.Err() != nil {
			return whyStopped(outer, ctx)
		}
		return err
	}
	if err := writeEnvironment(o, url, made.key()); err != nil {
		return err
	}
	say("%s", howToCall(o, url, made, time.Since(started)))
	<-ctx.Done()
	return whyStopped(outer, ctx)
}

// whyStopped returns why the run was given up; nil after Ctrl-C, which is no failure, even during the start.
func whyStopped(outer, ctx context.Context) error {
	if outer.Err() != nil {
		return nil
	}
	return context.Cause(ctx)
}

// bringUp starts and installs everything. It returns the address of the REST API and the samples: without SAMPLES
// those of an earlier run, or nil if there are none.
func bringUp(ctx context.Context, o options, keys *pki, children *supervisor, say reporter) (string, *samples, error) {
	say("starting etcd and kube-apiserver (data: %s) ...", o.state("etcd"))
	p, err := startPlane(ctx, o, keys, children)
	if err != nil {
		return "", nil, err
	}
	if err := startControllerManager(ctx, o, children, p, keys); err != nil {
		return "", nil, err
	}
	say("installing custom resources, roles and admission policies ...")
	if err := install(ctx, o, p.config); err != nil {
		return "", nil, err
	}
	say("starting the controllers and the REST API ...")
	url, err := startOperator(ctx, o, children, p)
	if err != nil {
		return "", nil, err
	}
	if !o.samples {
		made, err := earlierSamples(ctx, p.client, earlierTimeout)
		return url, made, err
	}
	say("making the sample organization and scanning the sample service with gosec (the first time gosec is built, about 2 minutes) ...")
	made, err := makeSamples(ctx, o, p)
	if err != nil {
		return "", nil, err
	}
	say("%s", made.summary)
	return url, made, nil
}

// howToCall returns the text for the user at the terminal once everything runs. The key is only shown there and never
// logged.
func howToCall(o options, url string, made *samples, took time.Duration) string {
	env := o.state("env")
	if relative, err := filepath.Rel(o.root, env); err == nil && filepath.IsLocal(relative) {
		env = relative
	}
	text := fmt.Sprintf("\nfindings-operator runs at %s (started in %s).", url, took.Round(time.Second))
	switch key := made.key(); {
	case key != "":
		text += fmt.Sprintf(` List the sample's findings with its API key:

  curl -H "Authorization: Bearer %s" "%s/v1/findings?size=2"

Or open the console and log in with the same key: %s/console/

In another terminal:

  source %s
  curl -H "Authorization: Bearer $FINDINGS_API_KEY" "$FINDINGS_URL/v1/reviews?size=2"
  export PATH="$PWD/bin:$PWD/bin/k8s:$PATH"
`, key, url, url, env)
	case made != nil && made.unready != "":
		text += fmt.Sprintf(` The sample's API key is not ready: %s
In another terminal:

  source %s
  export PATH="$PWD/bin:$PWD/bin/k8s:$PATH"
  kubectl describe apikey sample --namespace "$FINDINGS_NAMESPACE"
`, made.unready, env)
	case made != nil:
		text += fmt.Sprintf(` The sample's API key is disabled.
In another terminal, to enable it for the next start:

  source %s
  export PATH="$PWD/bin:$PWD/bin/k8s:$PATH"
  kubectl patch apikey sample --namespace "$FINDINGS_NAMESPACE" --type=merge --patch='{"spec":{"disabled":false}}'
`, env)
	default:
		// FINDINGS_NAMESPACE is the namespace of the organization that the first manifest creates.
		text += fmt.Sprintf(` There is no sample organization with an API key.
In another terminal, to make one with an API key:

  source %s
  export PATH="$PWD/bin:$PWD/bin/k8s:$PATH"
  kubectl apply --filename=config/samples/organization.yaml
  kubectl wait --for=condition=Ready organization/sample
  kubectl apply --filename=config/samples/apikey.yaml
  kubectl wait --for=condition=Ready apikey/sample --namespace "$FINDINGS_NAMESPACE"
  secret=$(kubectl get apikey sample --namespace "$FINDINGS_NAMESPACE" --output=jsonpath={.status.secretRef.name})
  export FINDINGS_API_KEY=$(kubectl get secret "$secret" --namespace "$FINDINGS_NAMESPACE" --template='{{.data.token | base64decode}}')
  curl -H "Authorization: Bearer $FINDINGS_API_KEY" "$FINDINGS_URL/v1/findings"
`, env)
	}
	return text + `  kubectl get appsec --namespace "$FINDINGS_NAMESPACE"
  kubectl findings --help

Ctrl-C stops every process; the data stays.`
}
