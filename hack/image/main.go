// Command image builds the operator's image without a container engine: from scratch, with the static binary and CA
// certificates, as tar files of the OCI layout, with an SBOM for each. The same sources, flags and Go version give the
// same bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// options are the command's flags.
type options struct {
	root          string
	out           string
	repository    string
	version       string
	revision      string
	created       int64
	architectures string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	o := options{}
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.StringVar(&o.root, "root", "../..", "the repository's root")
	flags.StringVar(&o.out, "out", "", "folder that the files are written to")
	flags.StringVar(&o.repository, "repository", "ghcr.io/appsec-dev/findings-operator",
		"name of the image without its tag")
	flags.StringVar(&o.version, "version", "", "tag of the image, and its version in labels")
	flags.StringVar(&o.revision, "revision", "", "commit that it is built from, for labels")
	flags.Int64Var(&o.created, "created", 0, "time of all that is in the image, in seconds since 1970")
	flags.StringVar(&o.architectures, "architectures", "amd64,arm64", "what to build for")
	certificatesTo := flags.String("certificates", "", "write the CA certificates to this file and do nothing else")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *certificatesTo != "" {
		return os.WriteFile(*certificatesTo, certificates(), 0o644) //nolint:gosec // public certificates
	}
	if o.out == "" || o.version == "" {
		return errors.New("--out and --version are needed")
	}
	return build(o)
}

// build writes a tar file and an SBOM for each architecture, and a tar file with all architectures.
func build(o options) error {
	if err := os.MkdirAll(o.out, 0o750); err != nil {
		return err
	}
	var all []platformImage
	for architecture := range strings.SplitSeq(o.architectures, ",") {
		one, err := buildFor(o, architecture)
		if err != nil {
			return fmt.Errorf("%s: %w", architecture, err)
		}
		all = append(all, one)
		path := filepath.Join(o.out, "findings-operator-"+architecture+".tar")
		digest, err := writeLayout(path, o, one)
		if err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		report(path, digest)
	}
	path := filepath.Join(o.out, "findings-operator.tar")
	digest, err := writeLayout(path, o, all...)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	report(path, digest)
	return nil
}

func report(path string, digest v1.Hash) { fmt.Fprintf(os.Stdout, "%s %s\n", path, digest) }

// platformImage is the image of one architecture.
type platformImage struct {
	architecture string
	image        v1.Image
}

func buildFor(o options, architecture string) (platformImage, error) {
	binary := filepath.Join(o.out, "findings-operator-"+architecture)
	if err := compile(o, architecture, binary); err != nil {
		return platformImage{}, err
	}
	content, err := os.ReadFile(binary) //nolint:gosec // written right before
	if err != nil {
		return platformImage{}, err
	}
	bill, err := sbom(o, binary, content)
	if err != nil {
		return platformImage{}, fmt.Errorf("make the SBOM: %w", err)
	}
	if err := os.WriteFile(binary+".cdx.json", bill, 0o644); err != nil { //nolint:gosec // to be published
		return platformImage{}, err
	}
	image, err := assemble(o, architecture, []file{
		{"etc/ssl/certs/ca-certificates.crt", 0o644, certificates()},
		{"findings-operator", 0o755, content},
		{"usr/share/sbom/findings-operator.cdx.json", 0o644, bill},
	})
	return platformImage{architecture: architecture, image: image}, err
}

// at returns the time of everything in the image.
func (o options) at() time.Time { return time.Unix(o.created, 0).UTC() }

func (o options) reference() string { return o.repository + ":" + o.version }
