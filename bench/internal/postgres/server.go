// Package postgres runs the machine's PostgreSQL in a separate folder, and loads the data of the
// REST API into it.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// ErrMissing reports that this machine has no PostgreSQL.
var ErrMissing = errors.New("PostgreSQL is not installed here (Debian: apt-get install postgresql)")

const (
	startTimeout  = time.Minute
	startInterval = 50 * time.Millisecond
)

// settings let PostgreSQL keep everything in memory, as on a dedicated server. It listens only on a
// socket in its folder.
var settings = []string{
	"listen_addresses=", "shared_buffers=1GB", "effective_cache_size=4GB", "work_mem=32MB", "maintenance_work_mem=512MB",
	"max_wal_size=4GB", "jit=off", "random_page_cost=1.1", "max_connections=60", "autovacuum=off",
}

// Server is a running PostgreSQL.
type Server struct {
	// DSN is the connection string.
	DSN string

	folder  string
	process *harness.Process
}

// binaries returns the folder of the newest PostgreSQL on the machine.
func binaries() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		slices.Sort(found)
		return filepath.Dir(found[len(found)-1]), nil
	}
	// If postgres is in the path, initdb is in the folder of the file that it links to.
	path, err := exec.LookPath("postgres")
	if err != nil {
		return "", ErrMissing
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), "initdb")); err != nil {
		return "", ErrMissing
	}
	return filepath.Dir(path), nil
}

// Start creates a database and serves it until Stop. It returns ErrMissing if PostgreSQL is not
// installed.
func Start(ctx context.Context) (*Server, error) {
	programs, err := binaries()
	if err != nil {
		return nil, err
	}
	// Use the system's temporary folder: the server may run as another user, who must have access
	// to it.
	folder, err := os.MkdirTemp("", "findings-bench-postgres-")
	if err != nil {
		return nil, err
	}
	data := filepath.Join(folder, "data")
	s := &Server{
		DSN: "host=" + folder + " user=postgres dbname=postgres", folder: folder,
		process: harness.NewProcess(folder, "postgres", filepath.Join(programs, "postgres"), "-D", data, "-k", folder),
	}
	s.process.Dir = folder
	s.process.StopSignal = syscall.SIGINT // ends the server without waiting for its clients
	for _, setting := range settings {
		s.process.Arguments = append(s.process.Arguments, "-c", setting)
	}
	if err := s.start(ctx, filepath.Join(programs, "initdb"), data); err != nil {
		return nil, errors.Join(fmt.Errorf("start PostgreSQL: %w", err), s.Stop())
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, initdb, data string) (err error) {
	if s.process.User, err = harness.OtherUser(s.folder); err != nil { // PostgreSQL refuses to run as root
		return err
	}
	initialise := exec.CommandContext(ctx, initdb, "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8",
		"--locale=C.UTF-8", "--no-sync")
	initialise.SysProcAttr, initialise.Dir = harness.ChildAttributes(), s.folder
	initialise.SysProcAttr.Credential = s.process.User
	if said, err := initialise.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, said)
	}
	if err := s.process.Start(); err != nil {
		return err
	}
	return s.waitReady(ctx)
}

func (s *Server) waitReady(ctx context.Context) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, startInterval, startTimeout, true, func(ctx context.Context) (bool, error) {
		if err := s.process.Err(); err != nil {
			return false, err
		}
		var connection *pgx.Conn
		if connection, last = pgx.Connect(ctx, s.DSN); last != nil {
			return false, nil
		}
		return true, connection.Close(ctx)
	})
	if err != nil {
		return fmt.Errorf("%w; its log ends:\n%s", errors.Join(err, last), s.process.LogTail())
	}
	return nil
}

// PIDs returns the process IDs of the server and of its current child processes, including one per
// connection.
func (s *Server) PIDs() ([]int, error) {
	parent := s.process.PID()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", parent, parent))
	if err != nil {
		return nil, err
	}
	pids := []int{parent}
	for child := range strings.FieldsSeq(string(content)) {
		pid, err := strconv.Atoi(child)
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// Stop ends the server and removes its folder.
func (s *Server) Stop() error { return errors.Join(s.process.Stop(), os.RemoveAll(s.folder)) }
