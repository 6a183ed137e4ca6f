package main

import (
	"crypto/tls"
	"io"
	"net/http"
)

// rates fetches any address that the caller names and believes any certificate.
func rates(w http.ResponseWriter, r *http.Request) {
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	answer, err := client.Get(r.URL.Query().Get("source"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	io.Copy(w, answer.Body)
}
