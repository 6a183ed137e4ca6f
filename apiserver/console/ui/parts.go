package ui

import (
	"context"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"
)

// Figure is a number at the top of a page.
type Figure struct {
	Name  string
	Count int32
	// Link is the address of the list of what is counted; empty if there is none.
	Link string
}

// Linked returns a figure with a link to what is counted, if there is any.
func Linked(name string, count int32, link string) Figure {
	if count == 0 {
		link = ""
	}
	return Figure{Name: name, Count: count, Link: link}
}

// Fact is a named value in a list of facts. Without a value it is not shown.
type Fact struct {
	Name, Value string
	// Link is the address of the list of what shares the value; empty if there is none.
	Link string
	// At is shown instead of Value, if set.
	At *time.Time
}

// Option is a value to choose from, and its label.
type Option struct{ Value, Word string }

// Filter is a field of the form above a list: a choice if it has options, else an input.
type Filter struct {
	// Name of the parameter in the page's address.
	Name, Label string
	// Options, except the one that does not filter.
	Options []Option
	// Any is the label of the option that does not filter.
	Any string
	// Type of the input, "text" by default.
	Type string
}

// NewestFirst is the choice of the order of a list that begins with the newest.
var NewestFirst = Filter{Name: "order", Label: "Order", Any: "newest first", Options: []Option{
	{Value: "asc", Word: "oldest first"},
}}

// Hidden is the type of a form field that is sent but not shown.
const Hidden = "hidden"

// value returns what the view has for the field. A date input takes only the day of a time.
func (f Filter) value(view url.Values) string {
	if f.Type == "date" {
		return Day(view.Get(f.Name))
	}
	return view.Get(f.Name)
}

// filtering reports whether the view has a value of one of the visible fields.
func filtering(view url.Values, fields []Filter) bool {
	return slices.ContainsFunc(fields, func(f Filter) bool { return f.value(view) != "" && f.Type != Hidden })
}

// Tab is a link to a named list.
type Tab struct {
	Word, Link string
	Current    bool
}

// Tone is the meaning of a badge's colour. The badge's word has the same meaning.
type Tone string

// The tones.
const (
	// Plain is neither good nor bad; it is the zero value.
	Plain Tone = ""
	// Going is in progress, or waits for somebody.
	Going Tone = "open"
	// Good is done.
	Good Tone = "good"
	// Bad has failed.
	Bad Tone = "bad"
	// Doubt needs a user's attention.
	Doubt Tone = "doubt"
)

// Severity shows a severity in words and in colour.
var Severity = Fixed(severityBadge, "high", "medium", "low")

// Text renders the Visible string like an expression of a template, in half the time: templ formats the value of each
// expression by fmt. Use it where there are many.
type Text string

// Render implements templ.Component.
func (t Text) Render(_ context.Context, w io.Writer) error {
	_, err := io.WriteString(w, templ.EscapeString(Visible(string(t))))
	return err
}

// Fixed renders a part once for each of these words, since a list shows them in every row. Parts for other words are
// rendered anew each time.
func Fixed(part func(word string) templ.Component, words ...string) func(word string) templ.Component {
	made := map[string]templ.Component{}
	for _, word := range words {
		var out strings.Builder
		if err := part(word).Render(context.Background(), &out); err != nil {
			panic(err) // a strings.Builder never fails
		}
		made[word] = templ.Raw(out.String())
	}
	return func(word string) templ.Component {
		if known, ok := made[word]; ok {
			return known
		}
		return part(word)
	}
}
