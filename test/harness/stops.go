package harness

import (
	"context"
	"errors"
	"os"
)

// Stops ends everything that was started for the tests of a package, the latest first.
type Stops []func() error

// Add makes Stop call this function, too.
func (s *Stops) Add(stop func() error) { *s = append(*s, stop) }

// Folder makes a temporary folder, which Stop removes.
func (s *Stops) Folder(prefix string) (string, error) {
	folder, err := os.MkdirTemp("", prefix)
	if err == nil {
		s.Add(func() error { return os.RemoveAll(folder) })
	}
	return folder, err
}

// Start starts the components one after the other, each when the one before is ready.
func (s *Stops) Start(ctx context.Context, components ...*Component) error {
	for _, component := range components {
		s.Add(component.Stop)
		if err := component.StartReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Stop ends everything, and returns all errors.
func (s *Stops) Stop() error {
	var errs []error
	for i := len(*s) - 1; i >= 0; i-- {
		errs = append(errs, (*s)[i]())
	}
	return errors.Join(errs...)
}
