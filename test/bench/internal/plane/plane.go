// Package plane runs a control plane of its own: a real etcd and kube-apiserver with the kinds, roles
// and admission policies installed, and the operator's own binary as controllers and as REST API,
// each with the credentials of its service account. Everything listens on the loopback interface.
package plane

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/appsec-dev/findings-operator/test/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// tokenSeconds is how long tokens of service accounts hold: longer than any run.
const tokenSeconds = 24 * 3600

// Plane is a control plane at work. Stop ends all of it.
type Plane struct {
	*testenv.Environment
	// Controller and Facade are nil while they do not run.
	Controller, Facade *Process

	folder, binary string
}

// Build compiles the operator as it is in the working tree, into the folder, and returns the
// binary's path.
func Build(ctx context.Context, folder string) (string, error) {
	binary := filepath.Join(folder, "findings-operator")
	command := exec.CommandContext(ctx, "go", "build", "-buildvcs=true", "-o", binary, "./cmd/findings-operator")
	command.Dir = testenv.RepositoryRoot()
	if said, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the operator: %w\n%s", err, said)
	}
	return binary, nil
}

// quiet keeps kube-apiserver from comparing all of its cache with all of etcd every five minutes, which
// takes both cores for half a minute with 100,000 findings: it would fall to one side or the other.
const quiet = "--feature-gates=DetectCacheInconsistency=false"

// Start starts etcd and kube-apiserver; the operator's processes are started when they are wanted.
// binary is the operator's, and the folder, which is there already, takes logs and credentials.
func Start(folder, binary string) (*Plane, error) {
	environment, err := testenv.Start(quiet)
	if err != nil {
		return nil, err
	}
	p := &Plane{Environment: environment, folder: folder, binary: binary}
	if err := p.prepare(); err != nil {
		return nil, errors.Join(err, environment.Stop())
	}
	return p, nil
}

func (p *Plane) prepare() error {
	if err := os.MkdirAll(p.cursorKeys(), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(p.cursorKeys(), "1"), []byte(rand.Text()+rand.Text()), 0o600); err != nil {
		return err
	}
	return nil
}

func (p *Plane) cursorKeys() string { return filepath.Join(p.folder, "cursor-keys") }

// StartController starts the controllers, with further flags, and waits until they see everything.
func (p *Plane) StartController(ctx context.Context, flags ...string) error {
	kubeconfig, err := p.kubeconfig(ctx, testenv.ControllerServiceAccount)
	if err != nil {
		return err
	}
	addresses, err := freeAddresses(ctx, 2)
	if err != nil {
		return err
	}
	process := &Process{Name: "controller", HealthAddress: addresses[0], MetricsAddress: addresses[1]}
	p.Controller, err = start(ctx, process, p.folder, p.binary, append([]string{
		"controller", "--kubeconfig=" + kubeconfig, "--namespace=" + testenv.SystemNamespace,
		"--health-probe-bind-address=" + addresses[0], "--metrics-bind-address=" + addresses[1],
		"--webhook-allow-cidr=127.0.0.1/32",
	}, flags...)...)
	return err
}

// StopController ends the controllers; none running is no error.
func (p *Plane) StopController() error { return stop(&p.Controller) }

// StartFacade starts the REST API, with further flags, and waits until it is ready.
func (p *Plane) StartFacade(ctx context.Context, flags ...string) error {
	kubeconfig, err := p.kubeconfig(ctx, testenv.APIServiceAccount)
	if err != nil {
		return err
	}
	addresses, err := freeAddresses(ctx, 2)
	if err != nil {
		return err
	}
	process := &Process{Name: "facade", Address: addresses[0], HealthAddress: addresses[1], MetricsAddress: addresses[1]}
	p.Facade, err = start(ctx, process, p.folder, p.binary, append([]string{
		"apiserver", "--kubeconfig=" + kubeconfig, "--namespace=" + testenv.SystemNamespace,
		"--bind-address=" + addresses[0], "--health-bind-address=" + addresses[1],
		"--cursor-keys-dir=" + p.cursorKeys(),
	}, flags...)...)
	return err
}

// StopFacade ends the REST API; none running is no error.
func (p *Plane) StopFacade() error { return stop(&p.Facade) }

func stop(process **Process) error {
	if *process == nil {
		return nil
	}
	err := (*process).Stop()
	*process = nil
	return err
}

// Stop ends everything.
func (p *Plane) Stop() error {
	return errors.Join(p.StopFacade(), p.StopController(), p.Environment.Stop())
}

// PIDs of what runs, by name: etcd, kube-apiserver, controller, facade.
func (p *Plane) PIDs() map[string]int {
	out := map[string]int{"etcd": p.ControlPlane.Etcd.PID(), "kube-apiserver": p.ControlPlane.APIServer.PID()}
	for _, process := range []*Process{p.Controller, p.Facade} {
		if process != nil {
			out[process.Name] = process.PID()
		}
	}
	return out
}

// Memory of what runs, by name.
func (p *Plane) Memory() (map[string]measure.Memory, error) {
	out := map[string]measure.Memory{}
	for name, pid := range p.PIDs() {
		memory, err := measure.MemoryOf(pid)
		if err != nil {
			return nil, fmt.Errorf("memory of %s: %w", name, err)
		}
		out[name] = memory
	}
	return out, nil
}

// Account returns a config that carries a token of a service account, which must be there.
func (p *Plane) Account(ctx context.Context, namespace, name string) (*rest.Config, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](tokenSeconds)}}
	if err := p.Environment.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, fmt.Errorf("request a token of %s/%s: %w", namespace, name, err)
	}
	config := rest.AnonymousClientConfig(p.Config)
	config.BearerToken, config.QPS = request.Status.Token, -1
	return config, nil
}

// kubeconfig writes one for a service account of the operator's and returns its path.
func (p *Plane) kubeconfig(ctx context.Context, account string) (string, error) {
	if _, err := p.ServiceAccount(ctx, testenv.SystemNamespace, account); err != nil {
		return "", err
	}
	config, err := p.Account(ctx, testenv.SystemNamespace, account)
	if err != nil {
		return "", err
	}
	path := filepath.Join(p.folder, account+".kubeconfig")
	return path, writeKubeconfig(path, config)
}

func writeKubeconfig(path string, config *rest.Config) error {
	const name = "bench"
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name, Namespace: testenv.SystemNamespace}},
		CurrentContext: name,
	}, path)
}
