package console

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"

	"github.com/appsec-dev/findings-operator/apiserver/console/deliveries"
	"github.com/appsec-dev/findings-operator/apiserver/console/findings"
	"github.com/appsec-dev/findings-operator/apiserver/console/keys"
	"github.com/appsec-dev/findings-operator/apiserver/console/login"
	"github.com/appsec-dev/findings-operator/apiserver/console/operations"
	"github.com/appsec-dev/findings-operator/apiserver/console/overview"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/policies"
	"github.com/appsec-dev/findings-operator/apiserver/console/reviews"
	"github.com/appsec-dev/findings-operator/apiserver/console/scans"
	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
)

// folders are the console's folders, each with its pages, style sheets and modules. The version depends on their order.
var folders = []struct {
	name   string
	files  fs.FS
	routes func() []page.Route
}{
	{"ui", ui.Files, nil},
	{"login", nil, login.Routes},
	{"overview", overview.Files, overview.Routes},
	{"findings", findings.Files, findings.Routes},
	{"reviews", reviews.Files, reviews.Routes},
	{"scans", scans.Files, scans.Routes},
	{"operations", operations.Files, operations.Routes},
	{"deliveries", nil, deliveries.Routes},
	{"policies", policies.Files, policies.Routes},
	{"keys", nil, keys.Routes},
}

// Routes returns all pages.
func (c *Console) Routes() (routes []page.Route) {
	for _, folder := range folders {
		if folder.routes != nil {
			routes = append(routes, folder.routes()...)
		}
	}
	return routes
}

// assets are the style sheets, modules and pictures of all folders.
type assets struct {
	// version changes whenever one of the assets changes. It is part of their addresses, so that browsers may cache
	// them. Modules import each other by relative addresses.
	version string
	files   map[string][]byte
}

func readAssets() (assets, error) {
	a := assets{files: map[string][]byte{}}
	sum := sha256.New()
	for _, folder := range folders {
		if folder.files == nil {
			continue
		}
		err := fs.WalkDir(folder.files, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := fs.ReadFile(folder.files, name)
			_, _ = fmt.Fprintf(sum, "%s/%s %d\n%s", folder.name, name, len(content), content) // a hash never fails
			a.files[path.Join(folder.name, name)] = content
			return err
		})
		if err != nil {
			return assets{}, fmt.Errorf("read the console's assets: %w", err)
		}
	}
	a.version = hex.EncodeToString(sum.Sum(nil))[:16]
	return a, nil
}

// address returns the address of an asset.
func (a assets) address(name string) string { return path.Join(Path, "assets", a.version, name) }

// AssetsPath is the path of the assets, below Path, in Gin's syntax. They need no session.
const AssetsPath = "assets/:version/*name"

// Assets returns all assets by name. They must not be changed.
func (c *Console) Assets() map[string][]byte { return c.assets.files }

// AssetHeader returns the header of an asset. While replicas are being replaced, a page of one replica may request its
// version of an asset from another. That one returns its own version, which a browser must not cache under this
// address.
func (c *Console) AssetHeader(version, name string) http.Header {
	h := header(contentTypes[path.Ext(name)])
	h.Set("Cache-Control", "no-store")
	if version == c.assets.version {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	return h
}

var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}
