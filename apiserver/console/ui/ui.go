// Package ui holds the common appearance of the console's pages: the frame around them, their style tokens, and the
// parts that several pages use.
package ui

import (
	"embed"
	"time"

	"github.com/appsec-dev/findings-operator/client"
)

// Files are the style sheets and modules of every page.
//
//go:embed *.css *.js *.svg
var Files embed.FS

// View is the content of the frame around a page.
type View struct {
	Title string
	// Who is the owner of the session's key.
	Who client.WhoAmI
	// At is the page's path.
	At string
	// Token is the value that the page's forms must send back.
	Token string
	// Place is the position in the stream of events at which the page was read.
	Place string
	// DataAge is how old what the page shows may be, in seconds.
	DataAge int
	// Styles and Modules are the assets of the page itself.
	Styles, Modules []string
	// Asset returns the address of an asset.
	Asset func(name string) string
}

// minutesOld returns how many minutes old the page may be. Less than one is not worth a warning.
func (v View) minutesOld() int { return v.DataAge / int(time.Minute/time.Second) }
