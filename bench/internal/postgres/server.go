// Package postgres runs the machine's PostgreSQL in a separate folder, and loads the data of the
// REST API into it.
package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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
	stopTimeout   = 30 * time.Second
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
	process *exec.Cmd
	said    *bytes.Buffer
	// ended is closed once the process has ended; endedBy is set before that.
	ended   chan struct{}
	endedBy error
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
	s := &Server{folder: folder, said: &bytes.Buffer{}, DSN: "host=" + folder + " user=postgres dbname=postgres"}
	if err := s.start(ctx, programs); err != nil {
		return nil, errors.Join(fmt.Errorf("start PostgreSQL: %w\n%s", err, s.said), s.Stop())
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, programs string) error {
	attributes := harness.ChildAttributes()
	var err error
	if attributes.Credential, err = harness.OtherUser(s.folder); err != nil { // PostgreSQL refuses to run as root
		return err
	}
	data := filepath.Join(s.folder, "data")
	initialise := exec.CommandContext(ctx, filepath.Join(programs, "initdb"), "-D", data, "-U", "postgres", "-A", "trust",
		"-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
	initialise.SysProcAttr, initialise.Dir = attributes, s.folder
	if said, err := initialise.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, said)
	}
	arguments := []string{"-D", data, "-k", s.folder}
	for _, setting := range settings {
		arguments = append(arguments, "-c", setting)
	}
	s.process = exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(programs, "postgres"), arguments...)
	s.process.SysProcAttr, s.process.Dir = attributes, s.folder
	s.process.Stdout, s.process.Stderr = s.said, s.said
	if err := s.process.Start(); err != nil {
		s.process = nil
		return err
	}
	s.ended = make(chan struct{})
	go func() {
		defer close(s.ended)
		s.endedBy = s.process.Wait()
	}()
	return s.waitReady(ctx)
}

func (s *Server) waitReady(ctx context.Context) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, startInterval, startTimeout, true, func(ctx context.Context) (bool, error) {
		select {
		case <-s.ended:
			return false, fmt.Errorf("it has ended: %w", s.endedBy)
		default:
		}
		var connection *pgx.Conn
		if connection, last = pgx.Connect(ctx, s.DSN); last != nil {
			return false, nil
		}
		return true, connection.Close(ctx)
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// PIDs returns the process IDs of the server and of its current child processes, including one per
// connection.
func (s *Server) PIDs() ([]int, error) {
	parent := s.process.Process.Pid
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
func (s *Server) Stop() error {
	var err error
	if s.process != nil {
		// SIGINT ends the server without waiting for its clients.
		err = s.process.Process.Signal(os.Interrupt)
		select {
		case <-s.ended:
		case <-time.After(stopTimeout):
			err = errors.Join(err, errors.New("PostgreSQL did not end"), s.process.Process.Kill())
			<-s.ended
		}
	}
	return errors.Join(err, os.RemoveAll(s.folder))
}
