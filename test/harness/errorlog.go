package harness

import (
	"io"
	"log/slog"

	"github.com/go-logr/logr"
)

// ErrorLogger returns a logger that writes only errors, as the programs do with the level error.
func ErrorLogger(to io.Writer) logr.Logger {
	return logr.FromSlogHandler(slog.NewTextHandler(to, &slog.HandlerOptions{Level: slog.LevelError}))
}
