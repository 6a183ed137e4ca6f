package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestTheAuditLogIgnoresTheLogLevel(t *testing.T) {
	for level, wantsOthers := range map[string]bool{"debug": true, "info": true, "warn": false, "error": false} {
		for _, format := range []string{"json", "text"} {
			var out bytes.Buffer
			log := newLibraryLogger(&out, format, logLevels[level])
			log.WithName("audit").Info("A finding was triaged.")
			log.WithValues("process", "controllers").WithName("audit").Info("A decision has ended.")
			log.Info("A cache has synced.")
			log.WithName("finding").Info("A worker has started.")
			for line, wants := range map[string]bool{
				"A finding was triaged.": true, "A decision has ended.": true,
				"A cache has synced.": wantsOthers, "A worker has started.": wantsOthers,
			} {
				if logged := strings.Contains(out.String(), line); logged != wants {
					t.Errorf("--log-level=%s --log-format=%s: %q is logged: %t\n%s", level, format, line, logged, out.String())
				}
			}
		}
	}
}

// The audit log's own lines carry the logger's name, by which they are selected.
func TestAuditLinesNameTheirLogger(t *testing.T) {
	var out bytes.Buffer
	newLibraryLogger(&out, "json", slog.LevelError).WithName("audit").Info("A finding was triaged.")
	harness.Contains(t, "the line", out.String(), `"logger":"audit"`)
}
