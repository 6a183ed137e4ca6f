package main

import (
	"database/sql"
	"fmt"
	"net/http"
)

type orders struct{ db *sql.DB }

// search puts the caller's words into the statement.
func (o *orders) search(w http.ResponseWriter, r *http.Request) {
	query := fmt.Sprintf("SELECT id, total FROM orders WHERE customer = '%s'", r.URL.Query().Get("customer"))
	rows, err := o.db.QueryContext(r.Context(), query)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var total string
		if err := rows.Scan(&id, &total); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, int32(id), total)
	}
}
