package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// crane takes a file for one of docker's, and a folder for a layout. It pushes the only entry of the layout's index.
func TestCranePushesAllPlatformsAsThePageSays(t *testing.T) {
	root := t.TempDir()
	writeTestImage(t, filepath.Join(root, "bin", "image", "findings-operator.tar"), "amd64", "arm64")
	pushed := layout.Path(filepath.Join(root, pushCommand(t, root)))

	top, err := pushed.ImageIndex()
	if err != nil {
		t.Fatalf("crane is given no layout: %v", err)
	}
	entries, err := top.IndexManifest()
	if err != nil || len(entries.Manifests) != 1 || !entries.Manifests[0].MediaType.IsIndex() {
		t.Fatalf("want an index as the only entry, got %+v, %v", entries, err)
	}
	index, err := top.ImageIndex(entries.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	images, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, one := range images.Manifests {
		image, err := index.Image(one.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Architecture != one.Platform.Architecture {
			t.Errorf("the index calls an image for %s one for %s", config.Architecture, one.Platform.Architecture)
		}
		platforms = append(platforms, one.Platform.String())
	}
	if want := []string{"linux/amd64", "linux/arm64"}; !slices.Equal(platforms, want) {
		t.Errorf("platforms %q, want %q", platforms, want)
	}
}

// writeTestImage writes what `make image` writes, with a text instead of the binary.
func writeTestImage(t *testing.T, to string, architectures ...string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		t.Fatal(err)
	}
	o := options{repository: "example.com/findings-operator", version: "v0.0.0-test"}
	var images []platformImage
	for _, architecture := range architectures {
		image, err := assemble(o, architecture, []file{{"findings-operator", 0o755, []byte(architecture)}})
		if err != nil {
			t.Fatal(err)
		}
		images = append(images, platformImage{architecture: architecture, image: image})
	}
	if _, err := writeLayout(to, o, images...); err != nil {
		t.Fatal(err)
	}
}

// pushCommand runs in a folder what docs/install.md runs to push the image, and returns what crane would push.
func pushCommand(t *testing.T, folder string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("```sh\n([^`]*\ncrane push [^`]*)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("docs/install.md has no block of commands with `crane push`")
	}
	const crane = `crane() { [ "$1 $#" = "push 3" ] && echo "$2"; }`
	//nolint:gosec // our own page
	command := exec.CommandContext(t.Context(), "bash", "-euc", crane+"\n"+string(block[1]))
	command.Dir, command.Stderr = folder, os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
