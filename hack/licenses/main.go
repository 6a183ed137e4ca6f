// Command licenses lists the licences of all modules that are linked into the binaries, and fails if one is missing,
// unknown or not permissive.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	classifier "github.com/google/licenseclassifier/v2"
	"github.com/google/licenseclassifier/v2/assets"
)

// permissive are the licences that only require attribution, and MPL-2.0, which only covers changed files of the
// module: no module here is changed.
var permissive = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MPL-2.0", "Unlicense",
	"Zlib"}

// apart are licences of a module that only apply to one of its packages. They do not count if that package is not
// linked in.
var apart = map[string]struct{ license, of string }{
	"github.com/alecthomas/chroma/v2": {"OFL-1.1", "github.com/alecthomas/chroma/v2/formatters/svg"}, // a font
}

// licenseFile matches the names of licence files at the root of a module.
var licenseFile = regexp.MustCompile(`(?i)^(licen[sc]e|copying|unlicense)([.-].*)?$`)

// confidence is the share of a licence's text that must match.
const confidence = 0.8

type module struct {
	Path, Version, Dir string
	Main               bool
	licenses           []string
	// packages of the module that are linked in.
	packages []string
}

func main() {
	out := flag.String("out", "", "Markdown file to write; without it the table is printed")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "Usage: licenses [-out FILE] PACKAGE ...\n\nLists the licences of the modules that the packages are built of.\n") //nolint:errcheck // for people
		flag.PrintDefaults()
	}
	flag.Parse()
	if err := run(*out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

func run(out string, packages []string) error {
	if len(packages) == 0 {
		return errors.New("name the packages, for example ./cmd/...")
	}
	modules, err := linked(packages)
	if err != nil {
		return err
	}
	classify, err := assets.DefaultClassifier()
	if err != nil {
		return err
	}
	var problems []error
	for i := range modules {
		m := &modules[i]
		if m.licenses, err = licensesOf(classify, m.Dir); err != nil {
			return err
		}
		if a, ok := apart[m.Path]; ok && !slices.Contains(m.packages, a.of) {
			m.licenses = slices.DeleteFunc(m.licenses, func(name string) bool { return name == a.license })
		}
		if problem := judge(*m); problem != nil {
			problems = append(problems, problem)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	if out == "" {
		_, err = os.Stdout.WriteString(table(modules))
		return err
	}
	return os.WriteFile(out, []byte(table(modules)), 0o644) //nolint:gosec // everybody may read it
}

// linked returns the modules of the packages and of all their imports, except the main module.
func linked(packages []string) ([]module, error) {
	command := exec.Command("go", append([]string{"list", "-deps", "-json=Module,ImportPath"}, packages...)...) //nolint:gosec,noctx // it is what the tool is told to do
	command.Stderr = os.Stderr
	listed, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var modules []module
	for decoder := json.NewDecoder(bytes.NewReader(listed)); ; {
		var item struct {
			Module     *module
			ImportPath string
		}
		switch err := decoder.Decode(&item); {
		case errors.Is(err, io.EOF):
			slices.SortFunc(modules, func(a, b module) int { return cmp.Compare(a.Path, b.Path) })
			return together(modules), nil
		case err != nil:
			return nil, err
		case item.Module != nil && !item.Module.Main:
			item.Module.packages = []string{item.ImportPath}
			modules = append(modules, *item.Module)
		}
	}
}

// together merges a module's entries, which are adjacent.
func together(sorted []module) (modules []module) {
	for _, m := range sorted {
		if last := len(modules) - 1; last >= 0 && modules[last].Path == m.Path {
			modules[last].packages = append(modules[last].packages, m.packages...)
			continue
		}
		modules = append(modules, m)
	}
	return modules
}

// licensesOf returns the licences found in the files at the root of a module, sorted.
func licensesOf(classify *classifier.Classifier, folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() || !licenseFile.MatchString(entry.Name()) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, entry.Name())) //nolint:gosec // a module's own file
		if err != nil {
			return nil, err
		}
		for _, match := range classify.Match(content).Matches {
			if match.MatchType == "License" && match.Confidence >= confidence {
				names = append(names, match.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func judge(m module) error {
	if len(m.licenses) == 0 {
		return fmt.Errorf("%s %s: no licence was found in %s", m.Path, m.Version, m.Dir)
	}
	for _, name := range m.licenses {
		if !slices.Contains(permissive, name) {
			return fmt.Errorf("%s %s: %s is not among the permissive licences", m.Path, m.Version, name)
		}
	}
	return nil
}

func table(modules []module) string {
	var b strings.Builder
	b.WriteString("# Licences\n\nOf the modules that are linked into the binaries; written by `make licenses`.\n\n| Module | Version | Licence |\n|---|---|---|\n")
	counts := map[string]int{}
	for _, m := range modules {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", m.Path, m.Version, strings.Join(m.licenses, ", "))
		for _, name := range m.licenses {
			counts[name]++
		}
	}
	b.WriteString("\n")
	for _, name := range permissive {
		if counts[name] > 0 {
			fmt.Fprintf(&b, "- %s: %d\n", name, counts[name])
		}
	}
	return b.String()
}
