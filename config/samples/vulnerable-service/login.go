package main

import (
	"crypto/md5"
	"encoding/hex"
	"math/rand"
	"net/http"
	"strconv"
)

// adminPassword is in the source for all to read. It opens nothing.
const adminPassword = "kQ8zW2vN5xJ1mB7tR4yL9pD3"

// login compares in a time that depends on the guess, hashes weakly and makes sessions that can be guessed.
func login(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("password") != adminPassword {
		http.Error(w, "wrong password", http.StatusForbidden)
		return
	}
	sum := md5.Sum([]byte(strconv.Itoa(rand.Int())))
	http.SetCookie(w, &http.Cookie{Name: "session", Value: hex.EncodeToString(sum[:])})
}
