// Package rig runs etcd, kube-apiserver, the controllers and the REST API as processes that a
// test kills, freezes and starts again, with doors between them that it can slow, starve and cut.
package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// The operator's namespace and its service accounts, as in config/rbac.
const (
	SystemNamespace   = "findings-system"
	controllerAccount = "findings-controller"
	apiAccount        = "findings-api"
)

// Options of a Rig.
type Options struct {
	// Root is the repository's folder, and Binaries that of the built programs.
	Root, Binaries string
	// Folder takes data and logs.
	Folder string
	// Scheme knows the built-in kinds and this project's.
	Scheme *runtime.Scheme
	// KeyStaleness of the REST API.
	KeyStaleness time.Duration
	// Controllers is how many run; more than one elect a leader.
	Controllers int
	// Redis is the path of redis-server; empty: none is used.
	Redis string
}

// Replica is a process of ours and the door through which it reaches the API server.
type Replica struct {
	*Process
	Door *Door
	// Health is the address of /readyz, and Metrics of /metrics.
	Health, Metrics string
}

// Rig is everything at work.
type Rig struct {
	*Plane
	Facade      *Replica
	Controllers []*Replica
	Redis       *Redis
	// URL of the REST API.
	URL string
	// Client of the administrator, which reaches the API server directly.
	Client client.Client
	// Kubeconfig of the administrator.
	Kubeconfig string

	options Options
}

// Start starts everything and installs what is in config/plane. What it returns must be stopped,
// with an error too.
func Start(ctx context.Context, options Options) (*Rig, error) {
	r := &Rig{options: options}
	var err error
	if r.Plane, err = newPlane(ctx, filepath.Join(options.Root, "bin", "k8s"), options.Folder); err != nil {
		return r, err
	}
	if r.Client, err = client.New(r.Admin, client.Options{Scheme: options.Scheme}); err != nil {
		return r, err
	}
	if r.Kubeconfig, err = r.writeKubeconfig("admin", r.APIServerAddress, r.Admin.BearerToken); err != nil {
		return r, err
	}
	if err := r.install(ctx); err != nil {
		return r, err
	}
	if options.Redis != "" {
		if r.Redis, err = newRedis(ctx, options.Redis, options.Folder); err != nil {
			return r, err
		}
	}
	for i := range options.Controllers {
		controller, err := r.newController(ctx, i)
		if err != nil {
			return r, err
		}
		r.Controllers = append(r.Controllers, controller)
	}
	r.Facade, err = r.newFacade(ctx)
	return r, err
}

// Stop kills everything.
func (r *Rig) Stop() {
	replicas := r.Controllers
	if r.Facade != nil {
		replicas = append(replicas, r.Facade)
	}
	for _, replica := range replicas {
		replica.Kill()
		replica.Door.Close()
	}
	if r.Redis != nil {
		r.Redis.Process.Kill()
		if r.Redis.Door != nil {
			r.Redis.Door.Close()
		}
	}
	if r.Plane != nil && r.APIServer != nil {
		r.APIServer.Kill()
		r.Etcd.Kill()
	}
}

// Logs is how each process's log ends.
func (r *Rig) Logs() string {
	files, _ := filepath.Glob(filepath.Join(r.options.Folder, "*.log"))
	var out strings.Builder
	for _, file := range files {
		fmt.Fprintf(&out, "--- %s\n%s\n", filepath.Base(file), tail(file, 30))
	}
	return out.String()
}

func (r *Rig) install(ctx context.Context) error {
	kubectl := filepath.Join(r.options.Root, "bin", "k8s", "kubectl")
	for _, what := range []string{
		"--kustomize=" + filepath.Join(r.options.Root, "config", "plane"),
		"--filename=" + filepath.Join(r.options.Root, "config", "manager", "role.yaml"), // the Lease
	} {
		apply := exec.CommandContext(ctx, kubectl, "--kubeconfig="+r.Kubeconfig, "apply", "--server-side", what) //nolint:gosec // the project's own
		if out, err := apply.CombinedOutput(); err != nil {
			return fmt.Errorf("kubectl apply %s: %w\n%s", what, err, out)
		}
	}
	return until(ctx, "the admission policies are in force", r.policiesInForce)
}

// policiesInForce tries, in dry runs, what one validating policy refuses and one mutating policy changes.
func (r *Rig) policiesInForce(ctx context.Context) error {
	facade := rest.CopyConfig(r.Admin)
	facade.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + SystemNamespace + ":" + apiAccount, Groups: []string{"system:masters"},
	}
	as, err := client.New(facade, client.Options{Scheme: r.options.Scheme})
	if err != nil {
		return err
	}
	if err := as.Create(ctx, canary(), client.DryRunAll); !apierrors.IsForbidden(err) {
		return fmt.Errorf("a forged author was not refused: %w", err)
	}
	stamped := canary()
	if err := r.Client.Create(ctx, stamped, client.DryRunAll); err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	if stamped.Spec.Triage.By == "forged" {
		return errors.New("the author was not stamped")
	}
	return nil
}

func canary() *v1alpha1.Finding {
	return &v1alpha1.Finding{
		ObjectMeta: metav1.ObjectMeta{Namespace: SystemNamespace, Name: "canary"},
		Spec: v1alpha1.FindingSpec{
			RepositoryRef: v1alpha1.RepositoryReference{Name: "canary"},
			ProjectRef:    v1alpha1.ProjectReference{Name: "canary"},
			Details:       v1alpha1.FindingDetails{Title: "canary", Severity: v1alpha1.LevelLow},
			Triage:        v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusMuted, By: "forged"},
		},
	}
}

func (r *Rig) newController(ctx context.Context, index int) (*Replica, error) {
	name := "controller-" + strconv.Itoa(index)
	addresses, err := localAddresses(2)
	if err != nil {
		return nil, err
	}
	replica := &Replica{Health: "http://" + addresses[0] + "/readyz", Metrics: "http://" + addresses[1] + "/metrics"}
	kubeconfig, err := r.openDoor(ctx, replica, name, controllerAccount)
	if err != nil {
		return nil, err
	}
	replica.Process = NewProcess(name, filepath.Join(r.options.Binaries, "findings-operator"), filepath.Join(r.options.Folder, name+".log"),
		"controller", "--kubeconfig="+kubeconfig, "--namespace="+SystemNamespace,
		"--health-probe-bind-address="+addresses[0], "--metrics-bind-address="+addresses[1],
		"--leader-elect="+strconv.FormatBool(r.options.Controllers > 1), "--webhook-allow-cidr=127.0.0.1/32")
	// One that loses its lease ends, and a kubelet starts it again.
	replica.Revive = true
	return replica, replica.Start()
}

func (r *Rig) newFacade(ctx context.Context) (*Replica, error) {
	addresses, err := localAddresses(2)
	if err != nil {
		return nil, err
	}
	r.URL = "http://" + addresses[0]
	replica := &Replica{Health: "http://" + addresses[1] + "/readyz", Metrics: "http://" + addresses[1] + "/metrics"}
	kubeconfig, err := r.openDoor(ctx, replica, "facade", apiAccount)
	if err != nil {
		return nil, err
	}
	keys := filepath.Join(r.options.Folder, "cursor-keys")
	if err := errors.Join(os.Mkdir(keys, 0o700), os.WriteFile(filepath.Join(keys, "1"), []byte(strings.Repeat("k", 32)), 0o600)); err != nil {
		return nil, err
	}
	arguments := []string{
		"apiserver", "--kubeconfig=" + kubeconfig, "--namespace=" + SystemNamespace,
		"--bind-address=" + addresses[0], "--health-bind-address=" + addresses[1],
		"--cursor-keys-dir=" + keys, "--key-staleness=" + r.options.KeyStaleness.String(),
	}
	if r.Redis != nil {
		arguments = append(arguments, "--redis-url-file="+r.Redis.URLFile)
	}
	replica.Process = NewProcess("facade", filepath.Join(r.options.Binaries, "findings-operator"),
		filepath.Join(r.options.Folder, "facade.log"), arguments...)
	return replica, replica.Start()
}

// openDoor makes the replica's door and returns a kubeconfig that leads through it, with a token
// of the service account.
func (r *Rig) openDoor(ctx context.Context, replica *Replica, name, account string) (string, error) {
	var err error
	if replica.Door, err = NewDoor(name, r.APIServerAddress); err != nil {
		return "", err
	}
	if replica.Door.Interceptor, err = NewInterceptor(r.Plane); err != nil {
		return "", err
	}
	object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: SystemNamespace, Name: account}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](4 * 3600)}}
	if err := r.Client.SubResource("token").Create(ctx, object, request); err != nil {
		return "", fmt.Errorf("request a token of %s: %w", account, err)
	}
	return r.writeKubeconfig(name, replica.Door.Address, request.Status.Token)
}

func (r *Rig) writeKubeconfig(name, address, token string) (string, error) {
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: "https://" + address, CertificateAuthorityData: r.authority}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
	if err != nil {
		return "", err
	}
	path := filepath.Join(r.options.Folder, name+".kubeconfig")
	return path, os.WriteFile(path, content, 0o600)
}
