package harness

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// ControlPlane is a kube-apiserver with its etcd. Their data survives a restart of the processes.
type ControlPlane struct {
	Etcd, APIServer *Process
	// EtcdAddress and APIServerAddress are where they listen.
	EtcdAddress, APIServerAddress string
	// Admin reaches the API server directly, without a client-side rate limit.
	Admin *rest.Config
	// Certificate is the API server's own; a proxy in front of it presents the same one.
	Certificate tls.Certificate
}

// ControlPlaneOptions holds the settings that differ between control planes.
type ControlPlaneOptions struct {
	// Folder holds data, credentials and logs.
	Folder string
	// EtcdFlags and APIServerFlags are added to the flags that every control plane has.
	EtcdFlags, APIServerFlags []string
	// Env is the environment of both processes, such as CollectLess returns; nil uses that of the test.
	Env []string
	// Credentials are those of an earlier control plane; nil creates new ones in the folder.
	Credentials *Credentials
}

// Credentials holds the API server's own certificate and keys, and the tokens that it accepts.
type Credentials struct {
	// CertificateFile, KeyFile and ServiceAccountKeyFile are paths of PEM files.
	CertificateFile, KeyFile, ServiceAccountKeyFile string
	// TokensFile is the path of kube-apiserver's CSV file of users; AdminToken is an administrator's
	// token.
	TokensFile, AdminToken string
}

// CollectLess returns the environment of the test, changed so that programs collect garbage less often: kube-apiserver
// spends a quarter of its time on it, and tests have more memory than time. Do not use it for programs that are
// measured.
func CollectLess() []string { return append(os.Environ(), "GOGC=400", "GOMEMLIMIT=1GiB") }

// ControlPlaneBinary returns the path of one of the control plane's programs, such as "kubectl".
func ControlPlaneBinary(name string) (string, error) {
	path := filepath.Join(Root(), "bin", "k8s", name)
	if _, err := os.Stat(path); err != nil {
		return "", errors.New("bin/k8s holds no " + name + ": run `make controlplane` first")
	}
	return path, nil
}

// StartControlPlane starts both processes and returns when the API server is ready. The caller must
// kill the returned control plane even if there is an error.
func StartControlPlane(ctx context.Context, options ControlPlaneOptions) (*ControlPlane, error) {
	p, err := NewControlPlane(options)
	if err != nil {
		return p, err
	}
	if err := errors.Join(p.Etcd.Start(), p.APIServer.Start()); err != nil {
		return p, err
	}
	return p, p.AwaitReady(ctx)
}

// NewControlPlane describes both processes without starting them.
func NewControlPlane(options ControlPlaneOptions) (*ControlPlane, error) {
	p := &ControlPlane{}
	addresses, err := FreeAddresses(3)
	if err != nil {
		return p, err
	}
	p.EtcdAddress, p.APIServerAddress = addresses[0], addresses[1]
	etcd, err := ControlPlaneBinary("etcd")
	if err != nil {
		return p, err
	}
	server, err := ControlPlaneBinary("kube-apiserver")
	if err != nil {
		return p, err
	}
	credentials := options.Credentials
	if credentials == nil {
		if credentials, err = makeCredentials(options.Folder); err != nil {
			return p, err
		}
	}
	if err := p.use(credentials); err != nil {
		return p, err
	}
	p.Etcd = NewProcess(options.Folder, "etcd", etcd, append([]string{
		"--data-dir=" + filepath.Join(options.Folder, "etcd"),
		"--listen-client-urls=http://" + p.EtcdAddress, "--advertise-client-urls=http://" + p.EtcdAddress,
		"--listen-peer-urls=http://" + addresses[2],
	}, options.EtcdFlags...)...)
	p.APIServer = NewProcess(options.Folder, "kube-apiserver", server,
		append(p.serverFlags(options.Folder, credentials), options.APIServerFlags...)...)
	p.Etcd.Env, p.APIServer.Env = options.Env, options.Env
	return p, nil
}

func (p *ControlPlane) serverFlags(folder string, credentials *Credentials) []string {
	_, port, _ := net.SplitHostPort(p.APIServerAddress)
	return []string{
		"--etcd-servers=http://" + p.EtcdAddress,
		"--bind-address=127.0.0.1", "--secure-port=" + port, "--cert-dir=" + folder,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-cluster-ip-range=10.0.0.0/24",
		"--allow-privileged=true", "--disable-admission-plugins=ServiceAccount", "--authorization-mode=RBAC",
		"--tls-cert-file=" + credentials.CertificateFile, "--tls-private-key-file=" + credentials.KeyFile,
		"--token-auth-file=" + credentials.TokensFile,
		"--service-account-key-file=" + credentials.ServiceAccountKeyFile,
		"--service-account-signing-key-file=" + credentials.ServiceAccountKeyFile,
	}
}

// use creates the administrator's config.
func (p *ControlPlane) use(credentials *Credentials) error {
	var err error
	if p.Certificate, err = tls.LoadX509KeyPair(credentials.CertificateFile, credentials.KeyFile); err != nil {
		return err
	}
	content, err := os.ReadFile(credentials.CertificateFile)
	p.Admin = &rest.Config{
		Host: "https://" + p.APIServerAddress, BearerToken: credentials.AdminToken, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: content},
	}
	return err
}

func makeCredentials(folder string) (*Credentials, error) {
	file := func(name string) string { return filepath.Join(folder, name) }
	c := &Credentials{
		CertificateFile: file("apiserver.crt"), KeyFile: file("apiserver.key"), ServiceAccountKeyFile: file("service-account.key"),
		TokensFile: file("tokens.csv"), AdminToken: rand.Text(),
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.ParseIP("127.0.0.1")}, nil)
	if err != nil {
		return nil, err
	}
	if _, _, err := keyutil.LoadOrGenerateKeyFile(c.ServiceAccountKeyFile); err != nil {
		return nil, err
	}
	return c, errors.Join(
		os.WriteFile(c.CertificateFile, certificate, 0o600),
		os.WriteFile(c.KeyFile, key, 0o600),
		os.WriteFile(c.TokensFile, []byte(c.AdminToken+",admin,admin,system:masters\n"), 0o600),
	)
}

// AwaitReady returns when the API server is ready.
func (p *ControlPlane) AwaitReady(ctx context.Context) error {
	client, err := rest.HTTPClientFor(p.Admin)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	over := func() error { return errors.Join(p.Etcd.Err(), p.APIServer.Err()) }
	if err := awaitAnswer(ctx, client, p.Admin.Host+"/readyz", over); err != nil {
		return fmt.Errorf("wait until the API server is ready: %w; its log ends:\n%s", err, p.APIServer.LogTail())
	}
	return nil
}

// Kill kills both processes at once: their data is no longer needed. It returns an error if a
// process had ended by itself.
func (p *ControlPlane) Kill() error {
	var errs []error
	for _, process := range []*Process{p.APIServer, p.Etcd} {
		if process != nil {
			errs = append(errs, process.Err())
			process.Kill()
		}
	}
	return errors.Join(errs...)
}
