// Command vulnerable-service is an order service that is wrong on purpose: a scanner is run over it.
// Do not run it.
package main

import (
	"database/sql"
	"log"
	"net/http"
	_ "net/http/pprof"
	"os"
)

func main() {
	db, err := sql.Open("postgres", os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	orders := &orders{db: db}
	http.HandleFunc("GET /orders", orders.search)
	http.HandleFunc("GET /invoices", download)
	http.HandleFunc("POST /thumbnails", thumbnail)
	http.HandleFunc("POST /login", login)
	http.HandleFunc("GET /rates", rates)
	// No timeouts: a slow client holds its connection for ever.
	log.Fatal(http.ListenAndServe(":8000", nil))
}
