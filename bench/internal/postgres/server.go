// Package postgres runs a PostgreSQL of the machine's own, in a folder of its own, and puts into it
// what the REST API shows.
package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"k8s.io/apimachinery/pkg/util/wait"
)

// ErrMissing says that this machine has no PostgreSQL.
var ErrMissing = errors.New("PostgreSQL is not installed here (Debian: apt-get install postgresql)")

const (
	startTimeout  = time.Minute
	startInterval = 50 * time.Millisecond
	stopTimeout   = 30 * time.Second
)

// settings let it keep everything in memory, as a server of its own would. It listens on a socket in
// its folder alone.
var settings = []string{
	"listen_addresses=", "shared_buffers=1GB", "effective_cache_size=4GB", "work_mem=32MB", "maintenance_work_mem=512MB",
	"max_wal_size=4GB", "jit=off", "random_page_cost=1.1", "max_connections=60", "autovacuum=off",
}

// Server is a PostgreSQL at work.
type Server struct {
	// DSN is how to connect.
	DSN string

	folder  string
	process *exec.Cmd
	said    *bytes.Buffer
	// ended is closed once the process is gone, endedBy is set before.
	ended   chan struct{}
	endedBy error
}

// binaries is the folder of the newest PostgreSQL on the machine.
func binaries() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		slices.Sort(found)
		return filepath.Dir(found[len(found)-1]), nil
	}
	// Where postgres is in the path, initdb is beside what that names.
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

// Start makes a database and serves it until Stop. ErrMissing: there is no PostgreSQL.
func Start(ctx context.Context) (*Server, error) {
	programs, err := binaries()
	if err != nil {
		return nil, err
	}
	// In the system's own folder: its owner is another user, who must get there.
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
	attributes, err := s.asOther()
	if err != nil {
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

// asOther is how to start it: as it refuses to run as root, then as the user postgres, or nobody.
func (s *Server) asOther() (*syscall.SysProcAttr, error) {
	attributes := childAttributes()
	if os.Getuid() != 0 {
		return attributes, nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		if account, err = user.Lookup("nobody"); err != nil {
			return nil, err
		}
	}
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attributes, os.Chown(s.folder, int(uid), int(gid))
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

// PIDs of the server and of those of its processes that are there now, one for each connection among them.
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

// Stop ends it and removes its folder.
func (s *Server) Stop() error {
	var err error
	if s.process != nil {
		// SIGINT ends it without waiting for its clients.
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
