package main

import (
	"net/http"
	"os"
	"os/exec"
)

// download reads whatever path the caller names.
func download(w http.ResponseWriter, r *http.Request) {
	content, err := os.ReadFile("/var/invoices/" + r.URL.Query().Get("name"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	w.Write(content)
}

// thumbnail hands the caller's words to a shell.
func thumbnail(w http.ResponseWriter, r *http.Request) {
	if err := exec.Command("sh", "-c",
		"convert "+r.FormValue("image")+" -resize 64x64 /tmp/thumbnail.png").Run(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
