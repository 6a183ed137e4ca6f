package rig

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	// startTimeout bounds each start, on a machine that has other work.
	startTimeout = 3 * time.Minute
	// checkInterval is how often a wait looks.
	checkInterval = 50 * time.Millisecond
)

// Plane is a kube-apiserver over an etcd, whose data outlives their processes.
type Plane struct {
	Etcd, APIServer *Process
	// EtcdAddress and APIServerAddress are where they listen.
	EtcdAddress, APIServerAddress string
	// Admin reaches the API server directly, without a client-side rate limit.
	Admin *rest.Config
	// Certificate is the API server's own; a proxy in front shows it too.
	Certificate tls.Certificate

	authority []byte
}

// newPlane starts both; binaries is the folder of their programs, folder takes data and logs.
func newPlane(ctx context.Context, binaries, folder string) (*Plane, error) {
	addresses, err := localAddresses(3)
	if err != nil {
		return nil, err
	}
	p := &Plane{EtcdAddress: addresses[0], APIServerAddress: addresses[1]}
	certificateFile, keyFile, err := p.makeCertificate(folder)
	if err != nil {
		return nil, err
	}
	accountKey := filepath.Join(folder, "service-account.key")
	if _, _, err := keyutil.LoadOrGenerateKeyFile(accountKey); err != nil {
		return nil, err
	}
	token := rand.Text()
	tokens := filepath.Join(folder, "tokens.csv")
	if err := os.WriteFile(tokens, []byte(token+",admin,admin,system:masters\n"), 0o600); err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(p.APIServerAddress)
	p.Etcd = NewProcess("etcd", filepath.Join(binaries, "etcd"), filepath.Join(folder, "etcd.log"),
		"--data-dir="+filepath.Join(folder, "etcd"),
		"--listen-client-urls=http://"+p.EtcdAddress, "--advertise-client-urls=http://"+p.EtcdAddress,
		"--listen-peer-urls=http://"+addresses[2])
	p.APIServer = NewProcess("kube-apiserver", filepath.Join(binaries, "kube-apiserver"), filepath.Join(folder, "kube-apiserver.log"),
		"--etcd-servers=http://"+p.EtcdAddress,
		// The history is what the tests judge by.
		"--etcd-compaction-interval=0",
		"--bind-address=127.0.0.1", "--secure-port="+port,
		"--cert-dir="+folder, "--tls-cert-file="+certificateFile, "--tls-private-key-file="+keyFile,
		"--token-auth-file="+tokens,
		"--service-account-key-file="+accountKey, "--service-account-signing-key-file="+accountKey,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-cluster-ip-range=10.0.0.0/24",
		"--allow-privileged=true", "--disable-admission-plugins=ServiceAccount", "--authorization-mode=RBAC")
	p.Admin = &rest.Config{
		Host: "https://" + p.APIServerAddress, BearerToken: token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: p.authority},
	}
	if err := errors.Join(p.Etcd.Start(), p.APIServer.Start()); err != nil {
		return p, err
	}
	return p, p.AwaitReady(ctx)
}

func (p *Plane) makeCertificate(folder string) (certificateFile, keyFile string, err error) {
	content, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.ParseIP("127.0.0.1")}, nil)
	if err != nil {
		return "", "", err
	}
	certificateFile, keyFile = filepath.Join(folder, "apiserver.crt"), filepath.Join(folder, "apiserver.key")
	if err := errors.Join(os.WriteFile(certificateFile, content, 0o600), os.WriteFile(keyFile, key, 0o600)); err != nil {
		return "", "", err
	}
	p.authority = content
	p.Certificate, err = tls.X509KeyPair(content, key)
	return certificateFile, keyFile, err
}

// AwaitReady returns when the API server says that it is ready.
func (p *Plane) AwaitReady(ctx context.Context) error {
	client, err := rest.HTTPClientFor(p.Admin)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	client.Timeout = 5 * time.Second
	return until(ctx, "the API server is ready", func(ctx context.Context) error {
		return answers(ctx, client, p.Admin.Host+"/readyz")
	})
}

// answers returns nil where the address answers 200.
func answers(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}

// until looks until check returns nil, for startTimeout at most.
func until(ctx context.Context, what string, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, checkInterval, startTimeout, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait until %s: %w", what, errors.Join(err, last))
	}
	return nil
}

// tail is how a log ends, without the requests that were served.
func tail(path string, lines int) string {
	content, err := os.ReadFile(path) //nolint:gosec // a log of the rig's own
	if err != nil {
		return err.Error()
	}
	all := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(content)), "\n"), func(line string) bool {
		return strings.Contains(line, `"msg":"Request"`)
	})
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
