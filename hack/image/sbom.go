package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

const modulePath = "github.com/appsec-dev/findings-operator"

// sbom returns a CycloneDX document of the modules that are linked into the binary, according to the binary's build
// information, and Go's standard library.
func sbom(o options, binary string, content []byte) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	components := []cdx.Component{{
		Type: cdx.ComponentTypeLibrary, Name: "std", Version: info.GoVersion,
		BOMRef: purl("std", strings.TrimPrefix(info.GoVersion, "go")), PackageURL: purl("std",
			strings.TrimPrefix(info.GoVersion, "go")),
	}}
	for _, module := range info.Deps {
		component, err := component(module)
		if err != nil {
			return nil, err
		}
		components = append(components, component)
	}
	document := cdx.NewBOM()
	// Derived from the content, not random: the same binary has the same document.
	document.SerialNumber = "urn:uuid:" + uuid.NewSHA1(uuid.NameSpaceURL, sum[:]).String()
	document.Metadata = &cdx.Metadata{
		Timestamp: o.at().Format(time.RFC3339),
		Component: &cdx.Component{
			Type: cdx.ComponentTypeApplication, Name: "findings-operator", Version: o.version,
			BOMRef: purl(modulePath, o.version), PackageURL: purl(modulePath, o.version),
			Hashes:   &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
			Licenses: &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
		},
	}
	document.Components = &components
	var out bytes.Buffer
	encoder := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON)
	if err := encoder.SetPretty(true).EncodeVersion(document, cdx.SpecVersion1_6); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func component(module *debug.Module) (cdx.Component, error) {
	if module.Replace != nil {
		return cdx.Component{}, fmt.Errorf("module %s is replaced: the SBOM would name what is not in it", module.Path)
	}
	return cdx.Component{
		Type: cdx.ComponentTypeLibrary, Name: module.Path, Version: module.Version,
		BOMRef: purl(module.Path, module.Version), PackageURL: purl(module.Path, module.Version),
	}, nil
}

func purl(module, version string) string { return "pkg:golang/" + module + "@" + version }
