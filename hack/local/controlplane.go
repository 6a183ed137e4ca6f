package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

const (
	// planeStartTimeout is for a machine that is busy compiling at the same time.
	planeStartTimeout = 2 * time.Minute
	planeStopTimeout  = 30 * time.Second
	// planeCheckInterval is how soon a dead etcd or kube-apiserver is noticed.
	planeCheckInterval = time.Second
)

// plane is etcd and kube-apiserver, with their data in the run folder.
type plane struct {
	// config is the administrator's, without a client-side rate limit.
	config *rest.Config
	// client of that administrator, which reads from the API server.
	client client.Client

	environment *envtest.Environment
	logs        []*os.File
	pids        string
	say         reporter
}

func startPlane(ctx context.Context, o options, keys *pki, say reporter) (*plane, error) {
	p := &plane{pids: o.state("pids"), say: say}
	var err error
	if p.environment, err = p.configure(ctx, o, keys); err != nil {
		return nil, errors.Join(err, p.closeLogs())
	}
	if p.config, err = p.environment.Start(); err != nil {
		err = fmt.Errorf("start etcd and kube-apiserver (see %s): %w", o.state("logs"), err)
		return nil, errors.Join(err, p.stop())
	}
	p.config.QPS = -1
	if err := p.prepareAdministrator(o, keys); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

// prepareAdministrator makes the administrator's client and kubeconfig.
func (p *plane) prepareAdministrator(o options, keys *pki) error {
	scheme := runtime.NewScheme()
	err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))
	if err != nil {
		return err
	}
	if p.client, err = client.New(p.config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("make the administrator's client: %w", err)
	}
	return writeKubeconfig(o.state("kubeconfig"), p.config, administrator, keys.tokens[administrator], "default")
}

func (p *plane) configure(ctx context.Context, o options, keys *pki) (*envtest.Environment, error) {
	etcd, err := p.configureEtcd(ctx, o)
	if err != nil {
		return nil, err
	}
	server, err := p.configureAPIServer(o, keys)
	if err != nil {
		return nil, err
	}
	return &envtest.Environment{
		ControlPlane:             envtest.ControlPlane{Etcd: etcd, APIServer: server},
		ControlPlaneStartTimeout: planeStartTimeout,
		ControlPlaneStopTimeout:  planeStopTimeout,
	}, nil
}

func (p *plane) configureEtcd(ctx context.Context, o options) (*envtest.Etcd, error) {
	path, log, err := p.prepare(o, "etcd")
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(ctx, 1)
	if err != nil {
		return nil, err
	}
	etcd := &envtest.Etcd{
		Path: path, Out: log, Err: log,
		DataDir: o.state("etcd"),
		URL:     &url.URL{Scheme: "http", Host: address(ports[0])},
	}
	// envtest trades durability for speed; what is kept here is kept.
	etcd.Configure().Disable("unsafe-no-fsync")
	return etcd, nil
}

func (p *plane) configureAPIServer(o options, keys *pki) (*envtest.APIServer, error) {
	path, log, err := p.prepare(o, "kube-apiserver")
	if err != nil {
		return nil, err
	}
	server := &envtest.APIServer{Path: path, Out: log, Err: log, CertDir: o.state("pki")}
	server.CA = keys.servingCA
	server.Authn = &tokenFile{tokens: keys.tokens}
	server.Configure().
		Set("service-account-key-file", keys.serviceAccountKeyFile).
		Set("service-account-signing-key-file", keys.serviceAccountKeyFile).
		// Not the server's address, which envtest takes: its port changes, and tokens outlive it.
		Set("service-account-issuer", "https://kubernetes.default.svc")
	return server, removeOldHelpers(server.CertDir)
}

func (p *plane) prepare(o options, name string) (path string, log *os.File, err error) {
	if path, err = offerAdoption(o, name); err != nil {
		return "", nil, err
	}
	if log, err = openLog(o, name); err != nil {
		return "", nil, err
	}
	p.logs = append(p.logs, log)
	return path, log, nil
}

// removeOldHelpers removes the kubeconfigs that envtest's own start leaves, one a start.
func removeOldHelpers(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.kubecfg"))
	for _, file := range files {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

func (p *plane) closeLogs() error {
	var err error
	for _, file := range p.logs {
		err = errors.Join(err, file.Close())
	}
	return err
}

// watch starts etcd and kube-apiserver again when they die, until the context ends.
func (p *plane) watch(ctx context.Context) {
	wait.UntilWithContext(ctx, func(context.Context) {
		p.revive("etcd", p.environment.ControlPlane.Etcd.Start)
		p.revive("kube-apiserver", p.environment.ControlPlane.APIServer.Start)
	}, planeCheckInterval)
}

func (p *plane) revive(name string, start func() error) {
	if pidAlive(p.pids, name) {
		return
	}
	p.say("%s has died; starting it again", name)
	if err := start(); err != nil {
		p.say("%s did not start: %v", name, err)
	}
}

func (p *plane) stop() error {
	return errors.Join(p.environment.Stop(), p.closeLogs())
}
