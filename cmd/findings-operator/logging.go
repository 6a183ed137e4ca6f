package main

import (
	"io"
	"log/slog"

	"github.com/go-logr/logr"
)

// auditLogger is the name of the logger to which the controllers write each decision stored in spec.triage.
const auditLogger = "audit"

// newHandler returns a handler that writes lines of that level and above, as JSON or as text.
func newHandler(to io.Writer, format string, level slog.Level) slog.Handler {
	options := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.NewJSONHandler(to, options)
	}
	return slog.NewTextHandler(to, options)
}

// newLibraryLogger returns a logger that writes lines of that level and above, and those of the audit log whatever the
// level is: a log that omits decisions would have gaps that nobody sees.
func newLibraryLogger(to io.Writer, format string, level slog.Level) logr.Logger {
	return logr.New(auditSink{
		LogSink: logr.FromSlogHandler(newHandler(to, format, level)).GetSink(),
		audit:   logr.FromSlogHandler(newHandler(to, format, min(level, slog.LevelInfo))).GetSink(),
	})
}

// auditSink is a sink whose logger of the name auditLogger writes to another sink.
type auditSink struct {
	logr.LogSink
	audit logr.LogSink
}

// WithName implements [logr.LogSink].
func (s auditSink) WithName(name string) logr.LogSink {
	if name == auditLogger {
		return s.audit.WithName(name)
	}
	return s.LogSink.WithName(name)
}

// WithValues implements [logr.LogSink].
func (s auditSink) WithValues(keysAndValues ...any) logr.LogSink {
	return auditSink{LogSink: s.LogSink.WithValues(keysAndValues...), audit: s.audit.WithValues(keysAndValues...)}
}
