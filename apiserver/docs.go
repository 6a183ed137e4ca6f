package apiserver

import (
	"bytes"
	"io/fs"
	"mime"
	"path"
	"strings"

	"github.com/gin-gonic/gin"
	swaggerfiles "github.com/swaggo/files/v2"
)

// docsPath is where the contract is shown to people, without authentication.
const docsPath = "/docs"

// docsPolicy allows the page to load from and call only this service, and forbids framing it. Swagger UI sets
// inline styles and has its images in its style sheet.
const docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// All URLs are relative, so that the service may be served under a path of a proxy.
const docsPage = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Security Findings Service API</title>
<link rel="stylesheet" href="docs/swagger-ui.css">
<link rel="icon" type="image/png" href="docs/favicon-32x32.png">
</head>
<body>
<div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`

// No validator, because it would run on another host. Nothing is stored in the browser: it would be the API
// key.
const docsScript = `SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  validatorUrl: null,
  persistAuthorization: false,
});
`

// docsAssets are the files of Swagger UI that the page asks for.
var docsAssets = []string{"swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png"}

// docsFiles returns all files of the page, by path.
func docsFiles() (map[string][]byte, error) {
	files := map[string][]byte{
		docsPath:               []byte(docsPage),
		docsPath + "/start.js": []byte(docsScript),
	}
	for _, name := range docsAssets {
		content, err := fs.ReadFile(swaggerfiles.FS, name)
		if err != nil {
			return nil, err
		}
		// The source map is not served.
		content, _, _ = bytes.Cut(content, []byte("\n//# sourceMappingURL="))
		files[docsPath+"/"+name] = content
	}
	return files, nil
}

func sendDocs(at string, content []byte) gin.HandlerFunc {
	body := newFile(content)
	contentType := "text/html; charset=utf-8"
	if extension := path.Ext(at); extension != "" {
		contentType = mime.TypeByExtension(extension)
		if strings.HasPrefix(contentType, "text/javascript") {
			contentType = "text/javascript; charset=utf-8"
		}
	}
	return func(c *gin.Context) {
		header := c.Writer.Header()
		header.Set("Content-Type", contentType)
		header.Set("Content-Security-Policy", docsPolicy)
		header.Set("Referrer-Policy", "no-referrer")
		// It changes only with a new version of the service.
		header.Set("Cache-Control", "public, max-age=3600")
		body.send(c)
	}
}
