// Command chart generates the parts of the chart that come from config/: CRDs, roles and admission policies. It runs
// from the repository's root, as `make generate` does.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// sources maps the manifests to the folder of their templates.
var sources = []struct{ pattern, folder string }{
	{"config/crd/bases/*.yaml", "crds"},
	{"config/rbac/*.yaml", "rbac"},
	{"config/manager/role.yaml", "rbac"},
	{"config/admission/*.yaml", "admission"},
}

const templates = "charts/findings-operator/templates"

// passedOver are files of those folders that are not part of a release: helm creates the namespace.
var passedOver = map[string]bool{"kustomization.yaml": true, "namespace.yaml": true}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run() error {
	written, err := convertAll()
	if err != nil {
		return err
	}
	for _, source := range sources {
		// Remove templates whose source is gone.
		if err := os.RemoveAll(filepath.Join(templates, source.folder)); err != nil {
			return err
		}
	}
	for path, text := range written {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// convertAll returns the templates by path.
func convertAll() (map[string]string, error) {
	written := map[string]string{}
	for _, source := range sources {
		files, err := filepath.Glob(source.pattern)
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("%s matches nothing: run this in the repository's root", source.pattern)
		}
		for _, file := range files {
			if passedOver[filepath.Base(file)] {
				continue
			}
			to := filepath.Join(templates, source.folder, filepath.Base(file))
			if written[to] != "" {
				return nil, fmt.Errorf("%s: another manifest is %s already", file, to)
			}
			if written[to], err = convert(file); err != nil {
				return nil, err
			}
		}
	}
	return written, nil
}

func convert(from string) (string, error) {
	manifest, err := os.ReadFile(from) //nolint:gosec // one of config/
	if err != nil {
		return "", err
	}
	text, err := template(string(manifest))
	if err != nil {
		return "", fmt.Errorf("%s: %w", from, err)
	}
	return "{{- /* Generated from " + filepath.ToSlash(from) + " by `make generate`. Change it there. */ -}}\n" + text, nil
}
