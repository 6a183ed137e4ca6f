package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/appsec-dev/findings-operator/bench/internal/dataset"
	"github.com/appsec-dev/findings-operator/bench/internal/load"
	"github.com/appsec-dev/findings-operator/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/bench/internal/postgres"
	"github.com/appsec-dev/findings-operator/bench/internal/rivals"
)

// singles is how many issues and how many projects are loaded into PostgreSQL.
const singles = 50

// Postgres is a handler backed by a PostgreSQL that holds the data of the fixture's REST API.
type Postgres struct {
	bench  *Bench
	server *postgres.Server
	child  *rivals.Child
}

// Postgres starts a PostgreSQL and fills it, on the first call. It returns postgres.ErrMissing if
// none is installed.
func (b *Bench) Postgres(ctx context.Context, f *Fixture) (*Postgres, error) {
	if f.postgres != nil {
		return f.postgres, nil
	}
	began := time.Now()
	p := &Postgres{bench: b}
	if err := p.start(ctx, f); err != nil {
		return nil, errors.Join(err, p.close())
	}
	f.postgres = p
	b.Say("PostgreSQL has the same %d findings after %s", f.Size, seconds(time.Since(began)))
	return p, nil
}

func (p *Postgres) start(ctx context.Context, f *Fixture) error {
	var err error
	if p.server, err = postgres.Start(ctx); err != nil {
		return err
	}
	if err := p.server.Load(ctx, postgres.Source{
		Organization: f.Organization.Name, Singles: some(f.Data),
		Get: func(path string) ([]byte, error) { return f.Get(ctx, path) },
		Walk: func(path string, each func(json.RawMessage) error) error {
			_, err := f.Walk(ctx, path, each)
			return err
		},
	}); err != nil {
		return err
	}
	p.child, err = rivals.Start(p.bench.Self(ctx, PostgresCommand, p.server.DSN, f.Organization.Name))
	return err
}

// some returns some of the issues and projects.
func some(data *dataset.Data) (out []postgres.Single) {
	for _, issue := range data.Issues[:min(singles, len(data.Issues))] {
		out = append(out, postgres.Single{Table: "issues", ID: issue.Name, Path: "/v2/issues/" + issue.Name})
	}
	for _, project := range data.Projects[:min(singles, len(data.Projects))] {
		path := fmt.Sprintf("/v2/repos/%s/projects/%s", project.Spec.RepositoryRef.Name, project.Name)
		out = append(out, postgres.Single{Table: "projects", ID: project.Name, Path: path})
	}
	return out
}

// Side returns a side that requests a path from the handler. The processor time of PostgreSQL is
// counted with the handler's.
func (p *Postgres) Side(name, path string) measure.Side {
	side := p.bench.Side(load.Target{Name: name, Address: p.child.Address,
		Requests: [][]byte{load.Get(p.child.Address, path)}}, p.child.PID())
	side.Children = p.server.PIDs
	return side
}

// Pages returns the paths of all pages of a list.
func (p *Postgres) Pages(ctx context.Context, path string) ([]string, error) {
	return walk(ctx, p.Get, path, nil)
}

// Get sends the handler one request.
func (p *Postgres) Get(ctx context.Context, path string) ([]byte, error) {
	return get(ctx, "http://"+p.child.Address+path, "")
}

func (p *Postgres) close() error {
	var err error
	if p.child != nil {
		err = p.child.Close()
	}
	if p.server != nil {
		err = errors.Join(err, p.server.Stop())
	}
	return err
}
