package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
)

// reader reads the result files that a command is given.
type reader struct {
	// stdin is read for the name "-".
	stdin io.Reader
	// sourceRoot is the folder, on the machine that scanned, that paths are relative to.
	sourceRoot string
}

// read reads every file before anything is written, and reports for each refused file why.
func (r *reader) read(names []string) ([]importer.File, error) {
	var files []importer.File
	var errs []error
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			errs = append(errs, fmt.Errorf("%s is listed twice", name))
			continue
		}
		log, err := r.readOne(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s is refused: %w", name, err))
			continue
		}
		files = append(files, importer.File{Name: name, Log: log})
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("nothing was imported: %w", errors.Join(errs...))
	}
	return files, nil
}

func (r *reader) readOne(name string) (*sarif.Log, error) {
	in := r.stdin
	if name != "-" {
		file, err := os.Open(name) //nolint:gosec // the user names the files to read
		if err != nil {
			return nil, err
		}
		defer file.Close() //nolint:errcheck // only read from
		in = file
	}
	return sarif.Parse(in, sarif.Options{SourceRoot: r.sourceRoot})
}
