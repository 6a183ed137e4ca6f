//go:build plane

package plane

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	. "github.com/onsi/gomega" //nolint:revive,staticcheck // gomega reads as it is meant to this way

	"github.com/appsec-dev/findings-operator/test/needs"
)

// postgresPrograms is the folder of the newest PostgreSQL on the machine.
func postgresPrograms(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	must(t, err)
	if len(found) > 0 {
		slices.Sort(found)
		return filepath.Dir(found[len(found)-1])
	}
	return filepath.Dir(needs.Program(t, "initdb", "postgresql"))
}

// startPostgres runs a database server of the test's own until the test ends. Its superuser comes
// by a socket in a folder of its own; by TCP, on the loopback address, a password is asked for.
func (s *shell) startPostgres(t *testing.T) *process {
	t.Helper()
	programs := postgresPrograms(t)
	folder, err := os.MkdirTemp("", "findings-plane-postgres-")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(folder)) })
	data := filepath.Join(folder, "data")
	initialise := exec.CommandContext(t.Context(), filepath.Join(programs, "initdb"), "-D", data, "-U", "postgres", //nolint:gosec // the machine's own
		"--auth-local=trust", "--auth-host=scram-sha-256", "-E", "UTF8", "--locale=C.UTF-8")
	initialise.SysProcAttr, initialise.Dir = asOther(t, folder), folder
	if output, err := initialise.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, output)
	}
	p := s.begin(t, &process{name: "postgresql", make: func() *exec.Cmd {
		command := exec.Command(filepath.Join(programs, "postgres"), "-D", data, "-k", folder, //nolint:gosec,noctx // the machine's own; stop ends it
			"-c", "listen_addresses=127.0.0.1", "-c", "port="+s.ports["5432"])
		command.SysProcAttr = asOther(t, folder)
		return command
	}})
	s.env = append(s.env, "PGHOST="+folder, "PGUSER=postgres", "PGPORT="+s.ports["5432"])
	eventually(t, func(g Gomega) {
		p.alive()
		_, err := s.quickly(t, "psql", "-d", "postgres", "-c", "select 1")
		g.Expect(err).NotTo(HaveOccurred())
	})
	return p
}

// asOther is how to start a server that refuses to run as root: as the user postgres, or nobody.
// The folder becomes that user's.
func asOther(t *testing.T, folder string) *syscall.SysProcAttr {
	t.Helper()
	if os.Getuid() != 0 {
		return &syscall.SysProcAttr{}
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		account, err = user.Lookup("nobody")
		must(t, err)
	}
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	must(t, err)
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	must(t, err)
	must(t, os.Chown(folder, int(uid), int(gid)))
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

// query asks the database as its superuser.
func (s *shell) query(t *testing.T, sql string) string {
	t.Helper()
	out, err := s.quickly(t, "psql", "-d", "findings", "-v", "ON_ERROR_STOP=1", "-Atc", sql)
	if err != nil {
		t.Fatalf("%s: %v\n%s", sql, err, out)
	}
	return out
}
