package apiserver

import (
	"bytes"
	"io/fs"

	"github.com/gin-gonic/gin"
	swaggerfiles "github.com/swaggo/files/v2"
)

// docsPath is where users can read the contract, without authentication.
const docsPath = "/docs"

// docsPolicy allows the page to load from and call only this service, and forbids framing it. Swagger UI sets
// inline styles and has its images in its style sheet.
const docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

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

// No validator, because it would run on another host. Nothing is stored in the browser, because that would be the API
// key.
const docsScript = `SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  validatorUrl: null,
  persistAuthorization: false,
});
`

// javaScript is the media type of a script.
const javaScript = "text/javascript; charset=utf-8"

// docsAssets are the files of Swagger UI that the page asks for, with their media types.
var docsAssets = map[string]string{
	"swagger-ui.css": "text/css; charset=utf-8", "swagger-ui-bundle.js": javaScript, "favicon-32x32.png": "image/png",
}

// docsFiles returns the handlers of all files of the page, by path.
func docsFiles() (map[string]gin.HandlerFunc, error) {
	files := map[string]gin.HandlerFunc{
		docsPath:               sendDocs("text/html; charset=utf-8", []byte(docsPage)),
		docsPath + "/start.js": sendDocs(javaScript, []byte(docsScript)),
	}
	for name, mediaType := range docsAssets {
		content, err := fs.ReadFile(swaggerfiles.FS, name)
		if err != nil {
			return nil, err
		}
		// The source map is not served.
		content, _, _ = bytes.Cut(content, []byte("\n//# sourceMappingURL="))
		files[docsPath+"/"+name] = sendDocs(mediaType, content)
	}
	return files, nil
}

func sendDocs(mediaType string, content []byte) gin.HandlerFunc {
	body := newFile(content)
	return func(c *gin.Context) {
		header := c.Writer.Header()
		header.Set("Content-Type", mediaType)
		header.Set("Content-Security-Policy", docsPolicy)
		header.Set("Referrer-Policy", "no-referrer")
		// It changes only with a new version of the service.
		header.Set("Cache-Control", "public, max-age=3600")
		body.send(c)
	}
}
