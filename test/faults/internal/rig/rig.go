// Package rig runs etcd, kube-apiserver, the controllers and the REST API as processes that a
// test kills, freezes and starts again, with doors between them that it can slow, starve and cut.
package rig

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// Options configures a Rig.
type Options struct {
	// Binaries is the folder of the built programs.
	Binaries string
	// Folder holds data and logs.
	Folder string
	// KeyStaleness is the REST API's --key-staleness.
	KeyStaleness time.Duration
	// Controllers is the number of controllers; more than one elect a leader.
	Controllers int
	// Redis is the path of redis-server; if empty, Redis is not used.
	Redis string
	// Env is the environment of etcd and kube-apiserver; nil uses that of the test. EtcdFlags are added to etcd's.
	Env, EtcdFlags []string
}

// Replica is one of this project's processes, with the door through which it reaches the API
// server.
type Replica struct {
	*harness.Component
	Door *Door
}

// Rig is the whole running service.
type Rig struct {
	*harness.ControlPlane
	Facade      *Replica
	Controllers []*Replica
	Redis       *harness.Process
	// URL is that of the REST API.
	URL string
	// Client is an administrator's client that reaches the API server directly.
	Client client.Client
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string

	options Options
	// redisURLFile is the value of --redis-url-file.
	redisURLFile string
}

// Start starts all processes and installs config/plane. The caller must stop the returned rig even
// if there is an error.
func Start(ctx context.Context, options Options) (*Rig, error) {
	r := &Rig{options: options}
	var err error
	if r.ControlPlane, err = harness.StartControlPlane(ctx, harness.ControlPlaneOptions{
		Folder: options.Folder, Env: options.Env, EtcdFlags: options.EtcdFlags,
		// The tests rely on the complete history.
		APIServerFlags: []string{"--etcd-compaction-interval=0"},
	}); err != nil {
		return r, err
	}
	if r.Client, err = client.New(r.Admin, client.Options{Scheme: testenv.NewScheme()}); err != nil {
		return r, err
	}
	r.Kubeconfig = filepath.Join(options.Folder, "admin.kubeconfig")
	if err := harness.WriteKubeconfig(r.Kubeconfig, r.Admin, ""); err != nil {
		return r, err
	}
	if err := r.install(ctx); err != nil {
		return r, err
	}
	if options.Redis != "" {
		if err := r.startRedis(ctx); err != nil {
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
	if r.Facade, err = r.NewFacade(ctx, "facade"); err != nil {
		return r, err
	}
	r.URL = "http://" + r.Facade.Address
	return r, nil
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
		r.Redis.Kill()
	}
	if r.ControlPlane != nil {
		_ = r.ControlPlane.Kill() // the logs show errors
	}
}

// Logs returns the end of each process's log.
func (r *Rig) Logs() string {
	files, _ := filepath.Glob(filepath.Join(r.options.Folder, "*.log"))
	var out strings.Builder
	for _, file := range files {
		fmt.Fprintf(&out, "--- %s\n%s\n", filepath.Base(file), tail(file, 30))
	}
	return out.String()
}

func (r *Rig) install(ctx context.Context) error {
	kubectl := filepath.Join(harness.Root(), "bin", "k8s", "kubectl")
	for _, what := range []string{
		"--kustomize=" + filepath.Join(harness.Root(), "config", "plane"),
		"--filename=" + filepath.Join(harness.Root(), "config", "manager", "role.yaml"), // the Lease
	} {
		apply := exec.CommandContext(ctx, kubectl, "--kubeconfig="+r.Kubeconfig, "apply", "--server-side", what) //nolint:gosec // the project's own
		if out, err := apply.CombinedOutput(); err != nil {
			return fmt.Errorf("kubectl apply %s: %w\n%s", what, err, out)
		}
	}
	return testenv.AwaitPolicies(ctx, r.Admin)
}

func (r *Rig) startRedis(ctx context.Context) (err error) {
	var address string
	if r.Redis, address, err = harness.StartRedis(ctx, r.options.Folder, r.options.Redis); err != nil {
		return err
	}
	r.redisURLFile = filepath.Join(r.options.Folder, "redis-url")
	return os.WriteFile(r.redisURLFile, []byte("redis://"+address), 0o600)
}

func (r *Rig) newController(ctx context.Context, index int) (*Replica, error) {
	replica, config, err := r.newReplica(ctx, "controller-"+strconv.Itoa(index), testenv.ControllerServiceAccount)
	if err != nil {
		return nil, err
	}
	replica.Component, err = r.operator().Controller("controller-"+strconv.Itoa(index), config,
		"--leader-elect="+strconv.FormatBool(r.options.Controllers > 1), "--webhook-allow-cidr=127.0.0.1/32")
	if err != nil {
		return nil, err
	}
	// A controller that loses its lease ends, and a kubelet would restart it.
	replica.Revive = true
	return replica, replica.Start()
}

// NewFacade starts a replica of the REST API.
func (r *Rig) NewFacade(ctx context.Context, name string) (*Replica, error) {
	replica, config, err := r.newReplica(ctx, name, testenv.APIServiceAccount)
	if err != nil {
		return nil, err
	}
	keys, err := r.operator().CursorKeys()
	if err != nil {
		return nil, err
	}
	flags := []string{keys, "--key-staleness=" + r.options.KeyStaleness.String()}
	if r.Redis != nil {
		flags = append(flags, "--redis-url-file="+r.redisURLFile)
	}
	if replica.Component, err = r.operator().Facade(name, config, flags...); err != nil {
		return nil, err
	}
	return replica, replica.Start()
}

func (r *Rig) operator() harness.Operator {
	return harness.Operator{
		Binary: filepath.Join(r.options.Binaries,
			"findings-operator"), Folder: r.options.Folder, Namespace: testenv.SystemNamespace,
	}
}

// newReplica creates a replica with a door, and a config that leads through it with a token of the
// service account.
func (r *Rig) newReplica(ctx context.Context, name, account string) (*Replica, *rest.Config, error) {
	door, err := openDoor(name, r.ControlPlane)
	if err != nil {
		return nil, nil, err
	}
	object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.SystemNamespace, Name: account}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(4 * 3600))}}
	if err := r.Client.SubResource("token").Create(ctx, object, request); err != nil {
		return nil, nil, fmt.Errorf("request a token of %s: %w", account, err)
	}
	config := rest.CopyConfig(r.Admin)
	config.Host, config.BearerToken = "https://"+door.Address, request.Status.Token
	return &Replica{Door: door}, config, nil
}

// tail returns the end of a log, without the lines about served requests.
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
