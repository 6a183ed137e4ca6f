package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/bench/internal/postgres"
)

// The names of the sides begin with the server; the question follows.
const (
	facadeSide   = "findings-operator"
	ceilingSide  = "Gin from memory"
	kubeSide     = "kube-apiserver LIST"
	postgresSide = "Gin + pgx + PostgreSQL"
)

func sideName(who, what string) string { return who + ", " + what }

// question is a request that all sides answer.
type question struct {
	// what describes the request in words.
	what string
	// facade and postgres are the request paths; if postgres is empty, PostgreSQL is not asked.
	facade, postgres string
	// kube is the resource to list at the API server, or the resource and an object's name, with
	// kubeQuery; if empty, the API server is not asked.
	kube, kubeQuery string
}

// sidesOf returns all sides that can answer the question. The ceiling answers with the facade's
// bytes. PostgreSQL is left out if the question has no path for it or pg is nil.
func sidesOf(ctx context.Context, b *bench.Bench, f *bench.Fixture, pg *bench.Postgres,
	q question) ([]measure.Side, error) {
	content, err := f.Get(ctx, q.facade)
	if err != nil {
		return nil, err
	}
	ceiling, err := b.CeilingSide(ctx, sideName(ceilingSide, q.what), content)
	if err != nil {
		return nil, err
	}
	sides := []measure.Side{
		b.Side(f.FacadeTarget(sideName(facadeSide, q.what), q.facade), f.Facade.PID()),
		ceiling,
	}
	if q.kube != "" {
		target, err := f.KubeTarget(sideName(kubeSide, q.what), q.kube, q.kubeQuery)
		if err != nil {
			return nil, err
		}
		sides = append(sides, b.Side(target, servers(f)...))
	}
	if pg != nil && q.postgres != "" {
		if err := sameAnswer(ctx, pg, q, content); err != nil {
			return nil, err
		}
		sides = append(sides, pg.Side(sideName(postgresSide, q.what), q.postgres))
	}
	return sides, nil
}

// sameAnswer returns an error if PostgreSQL answers with other items than the facade: then they
// would not do the same work.
func sameAnswer(ctx context.Context, pg *bench.Postgres, q question, want []byte) error {
	got, err := pg.Get(ctx, q.postgres)
	if err != nil {
		return err
	}
	type answer struct {
		Items json.RawMessage `json:"items"`
		Total int             `json:"total"`
		ID    string          `json:"id"`
	}
	var ours, theirs answer
	if err := errors.Join(json.Unmarshal(want, &ours), json.Unmarshal(got, &theirs)); err != nil {
		return err
	}
	if string(ours.Items) != string(theirs.Items) || ours.Total != theirs.Total || ours.ID != theirs.ID {
		return fmt.Errorf("%s: PostgreSQL answers otherwise: %d bytes of items of %d, not %d of %d",
			q.what, len(theirs.Items), theirs.Total, len(ours.Items), ours.Total)
	}
	return nil
}

// startPostgres returns nil and the reason if this machine has no PostgreSQL.
func startPostgres(ctx context.Context, b *bench.Bench,
	f *bench.Fixture) (pg *bench.Postgres, missing string, err error) {
	pg, err = b.Postgres(ctx, f)
	if errors.Is(err, postgres.ErrMissing) {
		b.Say("%v", err)
		return nil, err.Error(), nil
	}
	return pg, "", err
}
