// Package plugin_test runs `kubectl findings` as people do, on a real API server, with tokens of
// the roles that findings-operator installs. It also imports and uploads real scanner output.
package plugin_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/triageoperation"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// owner may do everything in one namespace.
const owner testenv.Role = "cluster-admin"

var (
	env *testenv.Environment
	// plugins is the folder that contains the plugin and its completion.
	plugins string
)

func TestMain(m *testing.M) { harness.Main(m, start) }

func start(ctx context.Context, stops *harness.Stops) (err error) {
	if plugins, err = stops.Folder("kubectl-findings"); err != nil {
		return err
	}
	programs, err := harness.Build(ctx)
	if err != nil {
		return err
	}
	// Not in the folder where it is built: a test adds the completion beside it.
	if err := os.Symlink(filepath.Join(programs, "kubectl-findings"), filepath.Join(plugins, "kubectl-findings")); err != nil {
		return err
	}
	if env, err = testenv.Start(stops); err != nil {
		return err
	}
	stop, err := controllertest.Run(env, triageoperation.SetupWithManager)
	if err != nil {
		return err
	}
	stops.Add(stop)
	return nil
}

// organization belongs to one test.
type organization struct {
	*testing.T
	name, namespace string
}

func newOrganization(t *testing.T, name string) *organization {
	t.Helper()
	namespace := env.Organization(t, name)
	harness.Must(t, env.LetOperate(t.Context(), namespace))
	return &organization{t, name, namespace}
}

// has creates findings, several at a time.
func (o *organization) has(findings ...*builder.FindingBuilder) {
	o.Helper()
	objects := make([]client.Object, len(findings))
	for i, f := range findings {
		objects[i] = f.In(o.namespace).Build()
	}
	env.CreateAtOnce(o, objects...)
}

// withMany creates n undecided findings.
func (o *organization) withMany(n int) *organization {
	o.Helper()
	findings := make([]*builder.FindingBuilder, n)
	for i := range findings {
		findings[i] = builder.Finding(fmt.Sprintf("f-%04d", i))
	}
	o.has(findings...)
	return o
}

func (o *organization) finding(name string) *v1alpha1.Finding {
	o.Helper()
	return env.Finding(o, o.namespace, name)
}

// observed sets a finding's status as the controllers would.
func (o *organization) observed(name string, set func(*v1alpha1.FindingStatus)) {
	o.Helper()
	testenv.ChangeStatus(o, env, builder.Finding(name).In(o.namespace).Build(), func(f *v1alpha1.Finding) { set(&f.Status) })
}

// versions returns the resource versions of all findings by name; every write changes them.
func (o *organization) versions() map[string]string {
	o.Helper()
	list := testenv.List(o, NewWithT(o), env, &v1alpha1.FindingList{}, client.InNamespace(o.namespace))
	versions := map[string]string{}
	for _, f := range list.Items {
		versions[f.Name] = f.ResourceVersion
	}
	return versions
}

// withVerdict counts the findings with that user status.
func (o *organization) withVerdict(status v1alpha1.UserStatus) int {
	o.Helper()
	return len(testenv.List(o, NewWithT(o), env, &v1alpha1.FindingList{}, client.InNamespace(o.namespace), client.MatchingFields{"spec.triage.userStatus": string(status)}).Items)
}

// person is a user who runs kubectl.
type person struct {
	*testing.T
	kubeconfig string
}

// member returns a person with only that role in the organization.
func (o *organization) member(role testenv.Role) *person {
	o.Helper()
	return o.as(o.token(role))
}

func (o *organization) token(role testenv.Role) *rest.Config {
	o.Helper()
	config, err := env.Member(o.Context(), o.namespace, "some-"+strings.TrimPrefix(string(role), "findings-"), role)
	harness.Must(o, err)
	return config
}

// administrator returns a person who may do everything.
func (o *organization) administrator() *person { return o.as(env.Config) }

func (o *organization) as(config *rest.Config) *person {
	o.Helper()
	return &person{o.T, testenv.WriteKubeconfig(o.T, config, o.namespace)}
}

// command returns the command `kubectl findings` with those arguments, for tests of what kubectl passes on.
func (p *person) command(arguments ...string) *exec.Cmd {
	cmd := exec.CommandContext(p.Context(), testenv.Binary(p, "kubectl"), append([]string{"findings"}, arguments...)...)
	return p.equip(cmd)
}

// direct returns the plugin without kubectl, which only replaces itself with the plugin, and takes a tenth of a second.
func (p *person) direct(arguments ...string) *exec.Cmd {
	return p.equip(exec.CommandContext(p.Context(), filepath.Join(plugins, "kubectl-findings"), arguments...))
}

func (p *person) equip(cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.kubeconfig, "PATH="+plugins+string(os.PathListSeparator)+os.Getenv("PATH"))
	return cmd
}

// findings runs the plugin with those arguments.
func (p *person) findings(arguments ...string) *harness.Outcome {
	p.Helper()
	return harness.Run(p, p.direct(arguments...))
}

// lists returns the names of the findings that the command list prints with these flags.
func (p *person) lists(flags string) string {
	p.Helper()
	names := []string{"list", "-o", "jsonpath={.items[*].metadata.name}"}
	return p.findings(append(names, strings.Fields(flags)...)...).Wants().Stdout
}
