//go:build plane

package plane

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/needs"
)

// postgresPrograms is the folder of the newest PostgreSQL on the machine.
func postgresPrograms(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	harness.Must(t, err)
	if len(found) > 0 {
		slices.Sort(found)
		return filepath.Dir(found[len(found)-1])
	}
	return filepath.Dir(needs.Program(t, "initdb", "postgresql"))
}

// startPostgres runs a separate database server until the test ends. Its superuser connects through
// a socket in a private folder; connections by TCP, on the loopback address, require a password.
func (s *shell) startPostgres(t *testing.T) *harness.Process {
	t.Helper()
	programs := postgresPrograms(t)
	folder, err := os.MkdirTemp("", "findings-plane-postgres-")
	harness.Must(t, err)
	t.Cleanup(func() { harness.Must(t, os.RemoveAll(folder)) })
	other, err := harness.OtherUser(folder)
	harness.Must(t, err)
	data := filepath.Join(folder, "data")
	initialise := exec.CommandContext(t.Context(), filepath.Join(programs, "initdb"), "-D", data, "-U", "postgres", //nolint:gosec // the machine's own
		"--auth-local=trust", "--auth-host=scram-sha-256", "-E", "UTF8", "--locale=C.UTF-8")
	initialise.SysProcAttr, initialise.Dir = &syscall.SysProcAttr{Credential: other}, folder
	if output, err := initialise.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, output)
	}
	p := harness.NewProcess(s.folder, "postgresql", filepath.Join(programs, "postgres"), "-D", data, "-k", folder,
		"-c", "listen_addresses=127.0.0.1", "-c", "port="+s.ports["5432"])
	p.User = other
	p.StopSignal = syscall.SIGINT // a fast shutdown: SIGTERM waits for its clients
	s.begin(t, p)
	s.env = append(s.env, "PGHOST="+folder, "PGUSER=postgres", "PGPORT="+s.ports["5432"])
	harness.Within(t, patience, func(g Gomega) {
		alive(p)
		_, err := s.quickly(t, "psql", "-d", "postgres", "-c", "select 1")
		g.Expect(err).NotTo(HaveOccurred())
	})
	return p
}

// query runs SQL as the database's superuser.
func (s *shell) query(t *testing.T, sql string) string {
	t.Helper()
	out, err := s.quickly(t, "psql", "-d", "findings", "-v", "ON_ERROR_STOP=1", "-Atc", sql)
	if err != nil {
		t.Fatalf("%s: %v\n%s", sql, err, out)
	}
	return out
}
