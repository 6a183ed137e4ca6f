package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/appsec-dev/findings-operator/test/leaks"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// buildTimeout is for a machine that compiles everything for the first time.
const buildTimeout = 10 * time.Minute

// startDeployment starts a control plane, the controllers and the facade, each with the rights
// of its own service account, and sets the flags as somebody would who tests a deployment.
// There nothing can be missing, so every test has to run.
func startDeployment() (stop func() error, err error) {
	var stops []func() error
	stop = func() error {
		var errs []error
		for i := len(stops) - 1; i >= 0; i-- {
			errs = append(errs, stops[i]())
		}
		return errors.Join(errs...)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, stop())
		}
	}()
	folder, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return stop, err
	}
	stops = append(stops, func() error { return os.RemoveAll(folder) })
	binary, err := buildOperator(folder)
	if err != nil {
		return stop, err
	}
	env, err := testenv.Start()
	if err != nil {
		return stop, err
	}
	stops = append(stops, env.Stop)
	if secretSearch, err = leaks.Start(env.Config, folder); err != nil {
		return stop, err
	}
	stops = append(stops, endSearch)

	addresses, err := freeAddresses(4)
	if err != nil {
		return stop, err
	}
	api, controllerHealth, controllerMetrics, apiHealth := addresses[0], addresses[1], addresses[2], addresses[3]
	for _, role := range []struct {
		account   string
		health    string
		metrics   string
		arguments []string
	}{
		{testenv.ControllerServiceAccount, controllerHealth, controllerMetrics, []string{"controller", "--metrics-bind-address=" + controllerMetrics, "--health-probe-bind-address=" + controllerHealth, "--webhook-allow-cidr=127.0.0.0/8"}},
		{testenv.APIServiceAccount, apiHealth, apiHealth, []string{"apiserver", "--bind-address=" + api, "--health-bind-address=" + apiHealth}},
	} {
		config, err := env.ServiceAccount(context.Background(), testenv.SystemNamespace, role.account)
		if err != nil {
			return stop, err
		}
		kubeconfig := filepath.Join(folder, role.account)
		if err := writeKubeconfig(kubeconfig, config); err != nil {
			return stop, err
		}
		process, err := startProcess(binary, append(role.arguments, "--kubeconfig="+kubeconfig)...)
		if err != nil {
			return stop, err
		}
		stops = append(stops, func() error {
			return errors.Join(keepMetrics(role.account, "http://"+role.metrics+"/metrics"), process.stop(), keepLog(role.account, process))
		})
		if err := process.waitUntilReady("http://" + role.health + "/readyz"); err != nil {
			return stop, err
		}
	}
	kubeconfigPath = filepath.Join(folder, "admin")
	*baseURL, *requireAll = "http://"+api, true
	return stop, writeKubeconfig(kubeconfigPath, env.Config)
}

// buildOperator builds what is tested, with the race detector where the suite has it.
func buildOperator(folder string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	binary := filepath.Join(folder, "findings-operator")
	arguments := []string{"build", "-o", binary}
	if raceDetector {
		arguments = append(arguments, "-race")
	}
	command := exec.CommandContext(ctx, "go", append(arguments, "./cmd/findings-operator")...)
	command.Dir = testenv.RepositoryRoot()
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build findings-operator: %w\n%s", err, output)
	}
	return binary, nil
}

// process is one of the operator's.
type process struct {
	command *exec.Cmd
	log     bytes.Buffer
	ended   chan error
}

func startProcess(binary string, arguments ...string) (*process, error) {
	p := &process{command: exec.Command(binary, arguments...), ended: make(chan error, 1)} //nolint:noctx // stop ends it
	p.command.Stdout, p.command.Stderr = &p.log, &p.log
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() { p.ended <- p.command.Wait() }()
	return p, nil
}

func (p *process) waitUntilReady(url string) error {
	client := &http.Client{Timeout: time.Second}
	return wait.PollUntilContextTimeout(context.Background(), interval, patience, true, func(ctx context.Context) (bool, error) {
		select {
		case err := <-p.ended:
			p.ended <- err
			return false, fmt.Errorf("%s ended: %w\n%s", p.command.Args[1], err, p.log.String())
		default:
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return false, err
		}
		response, err := client.Do(request)
		if err != nil {
			return false, nil //nolint:nilerr // not listening yet
		}
		response.Body.Close() //nolint:errcheck // nothing is read from it
		return response.StatusCode == http.StatusOK, nil
	})
}

// stop ends the process as a cluster does. One that found a data race, or does not end, is an error.
func (p *process) stop() error {
	_ = p.command.Process.Signal(syscall.SIGTERM) // it may have ended, which Wait tells
	select {
	case err := <-p.ended:
		if err != nil {
			return fmt.Errorf("%s ended: %w\n%s", p.command.Args[1], err, lastLines(p.log.String()))
		}
		return nil
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("%s did not end", p.command.Args[1]), p.command.Process.Kill())
	}
}

func lastLines(log string) string { return log[max(0, len(log)-8000):] }

func writeKubeconfig(path string, config *rest.Config) error {
	const name = "conformance"
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {
			ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken,
		}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

func freeAddresses(n int) ([]string, error) {
	var addresses []string
	for range n {
		listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		// Open until all are known, so that no two are the same.
		defer listener.Close() //nolint:errcheck,revive // nothing was written
		addresses = append(addresses, listener.Addr().String())
	}
	return addresses, nil
}
