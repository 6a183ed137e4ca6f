package main

import (
	"fmt"
	"strings"
)

// writeEnvironment writes the file that shells and tests source to reach this run. The file exists only while
// everything answers. Without a key its line is omitted.
func writeEnvironment(o options, url, key string) error {
	var content strings.Builder
	line := func(name, value string) { fmt.Fprintf(&content, "export %s=%s\n", name, quote(value)) }
	line("FINDINGS_URL", url)
	if key != "" {
		line("FINDINGS_API_KEY", key)
	}
	line("FINDINGS_NAMESPACE", sampleNamespace)
	line("KUBECONFIG", o.state("kubeconfig"))
	if err := writeFile(o.state("env"), []byte(content.String())); err != nil {
		return fmt.Errorf("write %s: %w", o.state("env"), err)
	}
	return nil
}

// quote leaves a plain word unchanged, for readers other than shells, and quotes everything else for a shell.
func quote(value string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=", r)
	}
	if strings.IndexFunc(value, func(r rune) bool { return !plain(r) }) < 0 {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}
