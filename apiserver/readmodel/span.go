package readmodel

import (
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// spanOf is the span of the timestamps shown that are not before start, and before end.
func spanOf(start, end *time.Time) index.Span { return index.Span{From: bound(start), To: bound(end)} }

// bound is the first timestamp shown that is not before a time. Times are shown in whole
// seconds, so that is the second that follows unless the time is one itself.
func bound(t *time.Time) string {
	if t == nil {
		return ""
	}
	second := t.UTC().Truncate(time.Second)
	if second.Before(*t) {
		second = second.Add(time.Second)
	}
	switch year := second.Year(); {
	case year < 0:
		return "0" // before every timestamp
	case year > 9999:
		return ":" // after every timestamp
	}
	return render.Timestamp(second)
}
