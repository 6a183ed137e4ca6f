package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// schema has one table per kind. An item is stored as it is sent, uncompressed and within its row,
// and each order and filter has an index: as much as possible is prepared when rows are written.
// Totals are kept separately, so that a list without a filter counts nothing.
const schema = `
create table findings (org text collate "C", id text collate "C", created_at timestamptz not null, item bytea not null) with (toast_tuple_target = 8160);
create table findings_v2 (org text collate "C", id text collate "C", item bytea not null) with (toast_tuple_target = 8160);
create table repositories (org text collate "C", id text collate "C", created_at timestamptz not null, item bytea not null) with (toast_tuple_target = 8160);
create table projects (org text collate "C", id text collate "C", item bytea not null) with (toast_tuple_target = 8160);
create table reviews (org text collate "C", id text collate "C", updated_at timestamptz not null, status text not null, open_issues int not null, reviewed boolean not null, item bytea not null) with (toast_tuple_target = 8160);
create table issues (org text collate "C", id text collate "C", item bytea not null) with (toast_tuple_target = 8160);
create table totals (org text, kind text, n bigint, primary key (org, kind));
alter table findings alter item set storage external;
alter table findings_v2 alter item set storage external;
alter table repositories alter item set storage external;
alter table projects alter item set storage external;
alter table reviews alter item set storage external;
alter table issues alter item set storage external;
`

// indexes are created after the rows are inserted; then the tables are put into the order in which
// they are read.
const indexes = `
create index findings_list on findings (org, created_at desc, id desc);
create unique index findings_v2_id on findings_v2 (org, id);
create index repositories_list on repositories (org, created_at desc, id desc);
create unique index projects_id on projects (org, id);
create index reviews_list on reviews (org, updated_at desc, id desc);
create index reviews_status on reviews (org, status, updated_at desc, id desc);
create index reviews_open on reviews (org, updated_at desc, id desc) where status = 'open' and open_issues > 0;
create index reviews_merged on reviews (org, updated_at desc, id desc) where status = 'merged' and open_issues > 0;
create index reviews_reviewed on reviews (org, reviewed, updated_at desc, id desc);
create unique index issues_id on issues (org, id);
cluster findings using findings_list;
cluster repositories using repositories_list;
cluster reviews using reviews_list;
`

// Source provides the rows: they come from the REST API itself, so that both answer with the same
// bytes.
type Source struct {
	Organization string
	// Walk passes every item of a list of the REST API to each, in the list's order.
	Walk func(path string, each func(item json.RawMessage) error) error
	// Get returns the REST API's answer to a path.
	Get func(path string) ([]byte, error)
	// Singles are requested one by one.
	Singles []Single
}

// Single is a row of the table for issues or projects, and the path of its item.
type Single struct{ Table, ID, Path string }

// Load creates the tables and fills them.
func (s *Server) Load(ctx context.Context, source Source) error {
	connection, err := pgx.Connect(ctx, s.DSN)
	if err != nil {
		return err
	}
	defer connection.Close(context.WithoutCancel(ctx)) //nolint:errcheck // all is committed
	if _, err := connection.Exec(ctx, schema); err != nil {
		return fmt.Errorf("make the tables: %w", err)
	}
	l := &loader{ctx: ctx, connection: connection, source: source}
	if err := l.load(); err != nil {
		return err
	}
	if _, err := connection.Exec(ctx, indexes); err != nil {
		return fmt.Errorf("make the indexes: %w", err)
	}
	// VACUUM cannot run in a transaction.
	_, err = connection.Exec(ctx, "vacuum analyze")
	return err
}

type loader struct {
	ctx        context.Context
	connection *pgx.Conn
	source     Source
}

// known holds the members of all kinds' items that become columns.
type known struct {
	ID             string    `json:"id"`
	CreatedAt      time.Time `json:"created_at"`
	UpdatedAt      time.Time `json:"updated_at"`
	PRStatus       string    `json:"pr_status"`
	OpenIssueCount int       `json:"open_issue_count"`
	LastReviewAt   *string   `json:"last_review_at"`
}

func (l *loader) load() error {
	org := l.source.Organization
	lists := []struct {
		table, path string
		columns     []string
		row         func(known, []byte) []any
	}{
		{"findings", "/v1/findings?size=1000", []string{"org", "id", "created_at", "item"},
			func(k known, item []byte) []any { return []any{org, k.ID, k.CreatedAt, item} }},
		{"findings_v2", "/v2/findings?size=1000", []string{"org", "id", "item"},
			func(k known, item []byte) []any { return []any{org, k.ID, item} }},
		{"repositories", "/v2/repos?size=1000", []string{"org", "id", "created_at", "item"},
			func(k known, item []byte) []any { return []any{org, k.ID, k.CreatedAt, item} }},
		{"reviews", "/v1/reviews?size=1000", []string{"org", "id", "updated_at", "status", "open_issues", "reviewed", "item"},
			func(k known, item []byte) []any {
				return []any{org, k.ID, k.UpdatedAt, k.PRStatus, k.OpenIssueCount, k.LastReviewAt != nil, item}
			}},
	}
	for _, list := range lists {
		n, err := l.copyList(list.table, list.columns, list.path, list.row)
		if err != nil {
			return fmt.Errorf("fill %s: %w", list.table, err)
		}
		if _, err := l.connection.Exec(l.ctx, "insert into totals values ($1, $2, $3)", org, list.table, n); err != nil {
			return err
		}
	}
	return l.copySingles()
}

// copyList fills a table from a list of the REST API.
func (l *loader) copyList(table string, columns []string, path string, row func(known, []byte) []any) (int64, error) {
	var rows [][]any
	err := l.source.Walk(path, func(item json.RawMessage) error {
		var k known
		if err := json.Unmarshal(item, &k); err != nil {
			return err
		}
		rows = append(rows, row(k, item))
		return nil
	})
	if err != nil {
		return 0, err
	}
	return l.connection.CopyFrom(l.ctx, pgx.Identifier{table}, columns, pgx.CopyFromRows(rows))
}

func (l *loader) copySingles() error {
	for _, single := range l.source.Singles {
		item, err := l.source.Get(single.Path)
		if err != nil {
			return err
		}
		if _, err := l.connection.Exec(l.ctx, "insert into "+single.Table+" (org, id, item) values ($1, $2, $3)",
			l.source.Organization, single.ID, item); err != nil {
			return err
		}
	}
	return nil
}
