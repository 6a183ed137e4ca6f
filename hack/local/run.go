package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"
)

// run brings everything up, says how to call it, and takes everything down when the context ends.
func run(ctx context.Context, o options, out io.Writer) (err error) {
	started := time.Now()
	say := newReporter(out)
	lock, err := lockRunDir(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := errors.Join(removeEnvironment(o), removePIDs(o.state("pids"))); err != nil {
		return err
	}
	if err := checkPort(ctx, o.port); err != nil {
		return err
	}
	keys, err := loadPKI(o)
	if err != nil {
		return err
	}

	say("starting etcd and kube-apiserver (data: %s) ...", o.state("etcd"))
	p, err := startPlane(ctx, o, keys, say)
	if err != nil {
		return err
	}
	var watching sync.WaitGroup
	watchCtx, endWatch := context.WithCancel(context.WithoutCancel(ctx))
	watching.Go(func() { p.watch(watchCtx) })
	children := &supervisor{options: o, say: say}
	defer func() {
		say("stopping ...")
		err = errors.Join(err, removeEnvironment(o), children.stopAll())
		endWatch()
		watching.Wait()
		err = errors.Join(err, p.stop(), removePIDs(o.state("pids")))
		say("stopped; the data is kept in %s", o.runDir)
	}()

	op, key, err := bringUp(ctx, o, p, keys, children, say)
	if err != nil {
		if ctx.Err() != nil {
			// Ctrl-C during the start is no failure.
			return nil
		}
		return err
	}
	if err := writeEnvironment(o, op.url, key); err != nil {
		return err
	}
	say("%s", howToCall(o, op.url, time.Since(started)))
	<-ctx.Done()
	return nil
}

// bringUp starts and installs what works on the control plane. It returns the sample key's
// token, empty without samples.
func bringUp(ctx context.Context, o options, p *plane, keys *pki, children *supervisor, say reporter) (*operator, string, error) {
	if err := startControllerManager(ctx, o, children, p.config, keys); err != nil {
		return nil, "", err
	}
	say("installing custom resources, roles and admission policies ...")
	if err := install(ctx, o, p.config); err != nil {
		return nil, "", err
	}
	say("starting the controllers and the REST API ...")
	op, err := startOperator(ctx, o, children, p)
	if err != nil {
		return nil, "", err
	}
	if err := op.waitReady(ctx, o); err != nil {
		return nil, "", err
	}
	if !o.samples {
		return op, "", nil
	}
	say("making the sample organization and scanning the sample service with gosec (the first time gosec is built, about 2 minutes) ...")
	key, err := makeSamples(ctx, o, p)
	if err != nil {
		return nil, "", err
	}
	summary, err := scanSample(ctx, o, p)
	if err != nil {
		return nil, "", err
	}
	say("%s", summary)
	return op, key, nil
}

func howToCall(o options, url string, took time.Duration) string {
	env := o.state("env")
	if relative, err := filepath.Rel(o.root, env); err == nil && filepath.IsLocal(relative) {
		env = relative
	}
	text := fmt.Sprintf("\nfindings-operator runs at %s (started in %s). In another terminal:\n\n  source %s\n",
		url, took.Round(time.Second), env)
	if o.samples {
		text += `  curl -H "Authorization: Bearer $FINDINGS_API_KEY" "$FINDINGS_URL/v1/findings?size=2"` + "\n"
	}
	return text + `  export PATH="$PWD/bin:$PWD/bin/k8s:$PATH"
  kubectl get appsec --namespace "$FINDINGS_NAMESPACE"
  kubectl findings --help

Ctrl-C stops every process; the data stays.`
}
