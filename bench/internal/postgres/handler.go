package postgres

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// handler answers as the REST API does, from PostgreSQL, and without keys, limits and logs: it
// stands for a service that keeps its data there and renders items when they are written. Items are
// copied from the connection's buffer to the answer without being parsed.
type handler struct {
	pool    *pgxpool.Pool
	buffers sync.Pool
}

// poolSettings allow as many connections as there may be callers, and open some from the start.
const poolSettings = " pool_max_conns=32 pool_min_conns=8"

// Handler serves the organization's data that Load has stored in that database.
func Handler(ctx context.Context, dsn, organization string) (http.Handler, error) {
	pool, err := pgxpool.New(ctx, dsn+poolSettings)
	if err != nil {
		return nil, err
	}
	if err := pool.Ping(ctx); err != nil {
		return nil, err
	}
	h := &handler{pool: pool, buffers: sync.Pool{New: func() any { return new(bytes.Buffer) }}}
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	// The organization is fixed: unlike the REST API, this handler does not look it up by key.
	engine.GET("/v1/findings", h.list(organization, findings))
	engine.GET("/v2/repos", h.list(organization, repositories))
	engine.GET("/v1/reviews", h.list(organization, reviews))
	engine.GET("/v2/findings/:id", h.single(organization, "select item from findings_v2 where org = $1 and id = $2"))
	engine.GET("/v2/issues/:id", h.single(organization, "select item from issues where org = $1 and id = $2"))
	engine.GET("/v2/projects/:id", h.single(organization, "select item from projects where org = $1 and id = $2"))
	return engine, nil
}

// source describes where a list is read from.
type source struct {
	table, order string
	size         int
	// conditions returns the SQL for the given query parameters; argument returns the SQL for a value.
	conditions func(query func(string) string, argument func(any) string) (sql []string, err error)
}

var (
	findings     = source{table: "findings", order: "created_at", size: 100}
	repositories = source{table: "repositories", order: "created_at", size: 100}
	reviews      = source{table: "reviews", order: "updated_at", size: 10, conditions: reviewConditions}
)

func reviewConditions(query func(string) string, argument func(any) string) (sql []string, err error) {
	for parameter, condition := range map[string]string{"start_time": "updated_at >= ", "end_time": "updated_at < "} {
		if query(parameter) == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339, query(parameter))
		if err != nil {
			return nil, err
		}
		sql = append(sql, condition+argument(at))
	}
	if status := query("status"); status != "" {
		sql = append(sql, "status = "+argument(status))
	}
	switch query("custom") {
	case "open_with_issues":
		sql = append(sql, "status = 'open' and open_issues > 0")
	case "merged_with_issues":
		sql = append(sql, "status = 'merged' and open_issues > 0")
	case "reviewed":
		sql = append(sql, "reviewed")
	case "not_reviewed":
		sql = append(sql, "not reviewed")
	}
	return sql, nil
}

func (h *handler) list(organization string, s source) gin.HandlerFunc {
	return func(c *gin.Context) {
		buffer := h.buffers.Get().(*bytes.Buffer)
		defer h.buffers.Put(buffer)
		buffer.Reset()
		if err := h.page(c.Request.Context(), buffer, organization, s, c.Query); err != nil {
			c.String(http.StatusInternalServerError, err.Error())
			return
		}
		c.Data(http.StatusOK, "application/json", buffer.Bytes())
	}
}

// page writes one page: a keyset query for the rows, together with the total.
func (h *handler) page(ctx context.Context, into *bytes.Buffer, organization string, s source,
	query func(string) string) error {
	size := s.size
	if given := query("size"); given != "" {
		var err error
		if size, err = strconv.Atoi(given); err != nil {
			return err
		}
	}
	var arguments []any
	argument := func(value any) string {
		arguments = append(arguments, value)
		return fmt.Sprint("$", len(arguments))
	}
	where := []string{"org = " + argument(organization)}
	if s.conditions != nil {
		conditions, err := s.conditions(query, argument)
		if err != nil {
			return err
		}
		where = append(where, conditions...)
	}
	total := fmt.Sprintf("select n from totals where org = $1 and kind = '%s'", s.table)
	if len(where) > 1 {
		total = fmt.Sprintf("select count(*) from %s where %s", s.table, strings.Join(where, " and "))
	}
	if cursor := query("cursor"); cursor != "" {
		at, id, err := parseCursor(cursor)
		if err != nil {
			return err
		}
		where = append(where, fmt.Sprintf("(%s, id) < (%s, %s)", s.order, argument(at), argument(id)))
	}
	sql := fmt.Sprintf("select item, %s, id, (%s) from %s where %s order by %s desc, id desc limit %d",
		s.order, total, s.table, strings.Join(where, " and "), s.order, size+1)
	rows, err := h.pool.Query(ctx, sql, arguments...)
	if err != nil {
		return err
	}
	defer rows.Close()
	return writePage(into, rows, size)
}

// writePage writes a page from rows of item, time, id and total.
func writePage(into *bytes.Buffer, rows pgx.Rows, size int) error {
	into.WriteString(`{"items":[`)
	var last struct {
		at    time.Time
		id    string
		total int64
	}
	n := 0
	for rows.Next() {
		n++
		if n > size {
			continue
		}
		if n > 1 {
			into.WriteByte(',')
		}
		// In the binary format, a bytea value is its raw bytes.
		into.Write(rows.RawValues()[0])
		if n == size || n == 1 {
			if err := rows.Scan(nil, &last.at, &last.id, &last.total); err != nil {
				return err
			}
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	next := ""
	if n > size {
		next = formatCursor(last.at, last.id)
	}
	fmt.Fprintf(into, `],"has_more":%t,"next_cursor":%q,"total":%d}`, n > size, next, last.total)
	return nil
}

func (h *handler) single(organization, sql string) gin.HandlerFunc {
	return func(c *gin.Context) {
		rows, err := h.pool.Query(c.Request.Context(), sql, organization, c.Param("id"))
		if err != nil {
			c.String(http.StatusInternalServerError, err.Error())
			return
		}
		defer rows.Close()
		if !rows.Next() {
			c.Status(http.StatusNotFound)
			return
		}
		c.Data(http.StatusOK, "application/json", rows.RawValues()[0])
	}
}

// formatCursor encodes the last row of a page.
func formatCursor(at time.Time, id string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(at.UnixMicro(), 10) + " " + id))
}

func parseCursor(cursor string) (time.Time, string, error) {
	content, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return time.Time{}, "", err
	}
	at, id, found := strings.Cut(string(content), " ")
	if !found {
		return time.Time{}, "", errors.New("no cursor")
	}
	micros, err := strconv.ParseInt(at, 10, 64)
	return time.UnixMicro(micros), id, err
}
