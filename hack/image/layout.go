package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// file is a file in the image.
type file struct {
	name    string
	mode    int64
	content []byte
}

// user of the process: one that no machine defines, as in the chart.
const user = "65532:65532"

// assemble returns an image of one layer from scratch.
func assemble(o options, architecture string, files []file) (v1.Image, error) {
	content, err := archive(o, files)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	created := v1.Time{Time: o.at()}
	image, err := mutate.Append(base, mutate.Addendum{
		Layer: layer, History: v1.History{Created: created, CreatedBy: "hack/image"}, MediaType: types.OCILayer,
	})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", architecture, created
	config.Config = v1.Config{
		User:       user,
		Entrypoint: []string{"/findings-operator"},
		WorkingDir: "/",
		Labels:     labels(o),
	}
	return mutate.ConfigFile(image, config)
}

func labels(o options) map[string]string {
	out := map[string]string{
		"org.opencontainers.image.title":       "findings-operator",
		"org.opencontainers.image.description": "Keeps an application-security team's findings in Kubernetes",
		"org.opencontainers.image.source":      "https://" + modulePath,
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     o.version,
	}
	if o.revision != "" {
		out["org.opencontainers.image.revision"] = o.revision
	}
	return out
}

// archive returns the layer: the files in their order, each after its folders.
func archive(o options, files []file) ([]byte, error) {
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	made := map[string]bool{".": true}
	var folder func(name string) error
	folder = func(name string) error {
		if made[name] {
			return nil
		}
		if err := folder(path.Dir(name)); err != nil {
			return err
		}
		made[name] = true
		return writer.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: o.at()})
	}
	for _, f := range files {
		if err := folder(path.Dir(f.name)); err != nil {
			return nil, err
		}
		if err := addFile(writer, o, f); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), writer.Close()
}

func addFile(writer *tar.Writer, o options, f file) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: o.at()}
	if err := writer.WriteHeader(header); err != nil {
		return err
	}
	_, err := writer.Write(f.content)
	return err
}

// writeLayout writes an OCI layout as a tar file and returns the digest of its content: the image, or an index if there
// are several.
func writeLayout(to string, o options, images ...platformImage) (v1.Hash, error) {
	folder, err := os.MkdirTemp("", "image-")
	if err != nil {
		return v1.Hash{}, err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a temporary folder
	at, err := layout.Write(folder, empty.Index)
	if err != nil {
		return v1.Hash{}, err
	}
	// containerd imports it by the first name, other tools by the second.
	named := layout.WithAnnotations(map[string]string{
		"io.containerd.image.name":          o.reference(),
		"org.opencontainers.image.ref.name": o.version,
	})
	var digest v1.Hash
	if len(images) == 1 {
		one := images[0]
		if err := at.AppendImage(one.image, named, layout.WithPlatform(platform(one.architecture))); err != nil {
			return v1.Hash{}, err
		}
		digest, err = one.image.Digest()
	} else {
		index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
		for _, one := range images {
			descriptor, err := partial.Descriptor(one.image)
			if err != nil {
				return v1.Hash{}, err
			}
			system := platform(one.architecture)
			descriptor.Platform = &system
			index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: one.image, Descriptor: *descriptor})
		}
		if err := at.AppendIndex(index, named); err != nil {
			return v1.Hash{}, err
		}
		digest, err = index.Digest()
	}
	if err != nil {
		return v1.Hash{}, err
	}
	return digest, pack(folder, to, o)
}

func platform(architecture string) v1.Platform {
	return v1.Platform{OS: "linux", Architecture: architecture}
}

// pack writes a folder into a tar file, in the order of the names.
func pack(folder, to string, o options) (err error) {
	out, err := os.Create(to) //nolint:gosec // the caller names it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	writer := tar.NewWriter(out)
	err = filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(name) //nolint:gosec // in our own folder
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(folder, name)
		if err != nil {
			return err
		}
		return addFile(writer, o, file{filepath.ToSlash(relative), 0o644, content})
	})
	return errors.Join(err, writer.Close())
}
