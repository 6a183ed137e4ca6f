package readmodel

import (
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
)

// spanOf returns the span of shown timestamps from start (inclusive) to end (exclusive).
func spanOf(start, end *time.Time) index.Span { return index.Span{From: bound(start), To: bound(end)} }

// bound returns the first shown timestamp that is not before a time of the years 1 to 9999. Times are shown in whole
// seconds, so a fraction is rounded up.
func bound(t *time.Time) string {
	if t == nil {
		return ""
	}
	second := findingquery.Bound(*t).Time
	if second.Year() > 9999 {
		return ":" // after every timestamp
	}
	return render.Timestamp(second)
}
