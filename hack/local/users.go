package main

import (
	"bytes"
	"encoding/csv"
)

// Users that are not service accounts. They authenticate with tokens that survive restarts.
const (
	administrator         = "admin"
	controllerManagerUser = "system:kube-controller-manager"
)

// staticUsers maps the users to their groups.
var staticUsers = map[string]string{administrator: "system:masters", controllerManagerUser: ""}

// tokensFile returns kube-apiserver's token file for the users; tokens are by user name.
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
