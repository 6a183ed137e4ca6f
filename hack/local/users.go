package main

import (
	"bytes"
	"encoding/csv"
)

// Users that are not service accounts. They are let in by tokens that stay the same across restarts.
const (
	administrator         = "admin"
	controllerManagerUser = "system:kube-controller-manager"
)

// staticUsers are the groups of each.
var staticUsers = map[string]string{administrator: "system:masters", controllerManagerUser: ""}

// tokensFile is what kube-apiserver reads of the users, whose tokens are given by name.
func tokensFile(tokens map[string]string) ([]byte, error) {
	content := &bytes.Buffer{}
	writer := csv.NewWriter(content)
	for name, groups := range staticUsers {
		if err := writer.Write([]string{tokens[name], name, name, groups}); err != nil {
			return nil, err
		}
	}
	writer.Flush()
	return content.Bytes(), writer.Error()
}
