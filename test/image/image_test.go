// Package image builds the operator's image as `make image` does and inspects it.
package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/x509"
	"debug/buildinfo"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// This is one test, because each build links the operator again; the first build also compiles
// everything.
func TestImage(t *testing.T) {
	builder := filepath.Join(t.TempDir(), "image")
	compile := exec.CommandContext(t.Context(), "go", "build", "-o", builder, ".")
	compile.Dir = filepath.Join(harness.Root(), "hack", "image")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("build hack/image: %v\n%s", err, out)
	}
	first := build(t, builder, harness.Root())
	image := open(t, readFile(t, first, "findings-operator-"+runtime.GOARCH+".tar"))

	t.Run("the same sources in another folder give the same bytes", func(t *testing.T) {
		second := build(t, builder, copySources(t))
		for _, name := range []string{"findings-operator-" + runtime.GOARCH + ".tar", "findings-operator-" + runtime.GOARCH + ".cdx.json"} {
			if !bytes.Equal(readFile(t, first, name), readFile(t, second, name)) {
				t.Errorf("two builds of %s differ", name)
			}
		}
	})

	t.Run("it runs the operator as nobody", func(t *testing.T) {
		harness.Same(t, "user", "65532:65532", image.config.Config.User)
		harness.Same(t, "entrypoint", []string{"/findings-operator"}, image.config.Config.Entrypoint)
		if image.config.OS != "linux" || image.config.Architecture != runtime.GOARCH {
			t.Errorf("it is for %s/%s", image.config.OS, image.config.Architecture)
		}
		for label, want := range map[string]string{
			"org.opencontainers.image.version": "v0.0.0-test", "org.opencontainers.image.revision": "0123", "org.opencontainers.image.licenses": "Apache-2.0",
		} {
			harness.Same(t, "label "+label, want, image.config.Config.Labels[label])
		}
	})

	t.Run("it has a name that containerd imports it by", func(t *testing.T) {
		harness.Same(t, "name", "ghcr.io/appsec-dev/findings-operator:v0.0.0-test", image.index.Manifests[0].Annotations["io.containerd.image.name"])
	})

	t.Run("it holds the binary, certificates and the SBOM, and nothing else", func(t *testing.T) {
		want := []string{"etc/ssl/certs/ca-certificates.crt", "findings-operator", "usr/share/sbom/findings-operator.cdx.json"}
		harness.Same(t, "files", want, image.names())
	})

	t.Run("the binary is static", func(t *testing.T) {
		binary, err := elf.NewFile(bytes.NewReader(image.files["findings-operator"]))
		harness.Must(t, err)
		for _, program := range binary.Progs {
			if program.Type == elf.PT_INTERP {
				t.Error("it asks for a loader, which the image has not")
			}
		}
	})

	t.Run("the certificates can be read", func(t *testing.T) {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(image.files["etc/ssl/certs/ca-certificates.crt"]) {
			t.Error("there is none")
		}
		if n := strings.Count(string(image.files["etc/ssl/certs/ca-certificates.crt"]), "BEGIN CERTIFICATE"); n < 50 {
			t.Errorf("there are only %d", n)
		}
	})

	t.Run("the SBOM names every module of the binary", func(t *testing.T) {
		checkSBOM(t, image.files["usr/share/sbom/findings-operator.cdx.json"], image.files["findings-operator"])
	})
}

// The Dockerfile's image is built by an engine, which tests have not.
func TestTheDockerfileLinksLikeMakeImage(t *testing.T) {
	flags := func(file string, pattern string) string {
		found := regexp.MustCompile(pattern).FindSubmatch(readFile(t, harness.Root(), file))
		if found == nil {
			t.Fatalf("%s has no %s", file, pattern)
		}
		return string(found[1])
	}
	compile := filepath.Join("hack", "image", "compile.go")
	want := flags(compile, `"-ldflags=([^"]*)"\+stamp\+`) + flags(compile, `stamp = "(-X )"`) +
		flags("go.mod", `module (\S+)`) + flags(compile, `modulePath \+ "([^"]*)"`) + "${VERSION#v}"
	harness.Same(t, "flags of the linker in the Dockerfile", want, flags("Dockerfile", `-ldflags="([^"]*)"`))
	// Reporters of vulnerabilities are asked for it.
	harness.Same(t, "label of the version", "${VERSION}", flags("Dockerfile", `org\.opencontainers\.image\.version="([^"]*)"`))
}

func build(t *testing.T, builder, root string) string {
	t.Helper()
	out := t.TempDir()
	command := exec.CommandContext(t.Context(), builder, "--root", root, "--out", out, "--version", "v0.0.0-test", "--revision", "0123",
		"--created", "1700000000", "--architectures", runtime.GOARCH)
	if printed, err := command.CombinedOutput(); err != nil {
		t.Fatalf("build the image: %v\n%s", err, printed)
	}
	return out
}

// copied matches a folder that the Dockerfile copies from the repository.
var copied = regexp.MustCompile(`(?m)^COPY (\w+) \w+$`)

// An engine is not given what .dockerignore leaves out.
func TestTheDockerfileGetsWhatItCopies(t *testing.T) {
	root := harness.Root()
	kept := strings.Split(string(readFile(t, root, ".dockerignore")), "\n")
	folders := regexp.MustCompile(`(?m)^COPY (\w\S*) \S+$`).FindAllSubmatch(readFile(t, root, "Dockerfile"), -1)
	if len(folders) < 5 {
		t.Fatalf("the Dockerfile copies only %q", folders)
	}
	for _, folder := range folders {
		if line := "!" + string(folder[1]); !slices.Contains(kept, line) {
			t.Errorf(".dockerignore has no line %s", line)
		}
	}
}

// copySources copies the sources that the Dockerfile uses to a folder of another name.
func copySources(t *testing.T) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "elsewhere")
	for _, found := range copied.FindAllStringSubmatch(string(readFile(t, harness.Root(), "Dockerfile")), -1) {
		folder := found[1]
		harness.Must(t, os.CopyFS(filepath.Join(to, folder), os.DirFS(filepath.Join(harness.Root(), folder))))
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		harness.Must(t, os.WriteFile(filepath.Join(to, file), readFile(t, harness.Root(), file), 0o600))
	}
	return to
}

func checkSBOM(t *testing.T, document, binary []byte) {
	t.Helper()
	var bill struct {
		BOMFormat string
		Metadata  struct {
			Component struct{ Hashes []struct{ Content string } }
		}
		Components []struct{ Purl string }
	}
	harness.Must(t, json.Unmarshal(document, &bill))
	info, err := buildinfo.Read(bytes.NewReader(binary))
	harness.Must(t, err)
	want := []string{"pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")}
	for _, module := range info.Deps {
		want = append(want, "pkg:golang/"+module.Path+"@"+module.Version)
	}
	var got []string
	for _, component := range bill.Components {
		got = append(got, component.Purl)
	}
	slices.Sort(want)
	slices.Sort(got)
	if difference := cmp.Diff(want, got); difference != "" || len(got) < 20 {
		t.Errorf("%d components:\n%s", len(got), difference)
	}
	sum := sha256.Sum256(binary)
	if hashes := bill.Metadata.Component.Hashes; bill.BOMFormat != "CycloneDX" || len(hashes) != 1 || hashes[0].Content != hex.EncodeToString(sum[:]) {
		t.Errorf("it is a %s document of %v, not of the image's binary", bill.BOMFormat, hashes)
	}
}

// openedImage is the content of an OCI layout with one image.
type openedImage struct {
	index  index
	config config
	files  map[string][]byte
}

func (i openedImage) names() []string {
	return slices.Sorted(maps.Keys(i.files))
}

type index struct {
	Manifests []struct {
		Digest      string
		Annotations map[string]string
	}
}

type config struct {
	OS, Architecture string
	Config           struct {
		User       string
		Entrypoint []string
		Labels     map[string]string
	}
}

// open follows a layout from its index to the files of the image's only layer, and verifies each
// digest on the way.
func open(t *testing.T, layout []byte) openedImage {
	t.Helper()
	blobs := untar(t, layout)
	blob := func(digest string) []byte {
		content, found := blobs["blobs/"+strings.ReplaceAll(digest, ":", "/")]
		sum := sha256.Sum256(content)
		if !found || digest != "sha256:"+hex.EncodeToString(sum[:]) {
			t.Fatalf("the layout has no blob %s of that digest", digest)
		}
		return content
	}
	decode := func(content []byte, into any) {
		if err := json.Unmarshal(content, into); err != nil {
			t.Fatalf("%v in %s", err, content)
		}
	}
	out := openedImage{}
	decode(blobs["index.json"], &out.index)
	if len(out.index.Manifests) != 1 {
		t.Fatalf("the layout holds %d images, want 1", len(out.index.Manifests))
	}
	var manifest struct {
		Config struct{ Digest string }
		Layers []struct{ Digest string }
	}
	decode(blob(out.index.Manifests[0].Digest), &manifest)
	decode(blob(manifest.Config.Digest), &out.config)
	if len(manifest.Layers) != 1 {
		t.Fatalf("the image has %d layers, want 1", len(manifest.Layers))
	}
	layer, err := gzip.NewReader(bytes.NewReader(blob(manifest.Layers[0].Digest)))
	harness.Must(t, err)
	content, err := io.ReadAll(layer)
	harness.Must(t, err)
	out.files = untar(t, content)
	return out
}

// untar returns the files of an archive; all must have the build's timestamp.
func untar(t *testing.T, content []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	reader := tar.NewReader(bytes.NewReader(content))
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		harness.Must(t, err)
		if header.ModTime.Unix() != 1700000000 || header.Uid != 0 || header.Gid != 0 {
			t.Errorf("%s is of %s, user %d", header.Name, header.ModTime, header.Uid)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if files[header.Name], err = io.ReadAll(reader); err != nil {
			t.Fatal(err)
		}
	}
}

func readFile(t *testing.T, folder, name string) []byte {
	t.Helper()
	return []byte(harness.File(t, filepath.Join(folder, name)))
}
