package ui

import (
	"context"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/a-h/templ"

	"github.com/appsec-dev/findings-operator/client"
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

// Place formats a line of a file for display.
func Place[N int | int32](path string, line N) string {
	path = Visible(path)
	if line == 0 {
		return path
	}
	return path + ":" + strconv.Itoa(int(line))
}

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

// Minute formats a time string of the REST API as Time does.
func Minute(at string) string {
	const day, minute = len(time.DateOnly), len("2006-01-02T15:04")
	if len(at) != len("2006-01-02T15:04:05Z") || at[day] != 'T' {
		return at
	}
	return at[:day] + " " + at[day+1:minute] + " UTC"
}

// Instant formats a time in UTC: to the minute, or to the second if it is not the minute's first.
func Instant(at time.Time) string {
	if at.Second() == 0 {
		return at.UTC().Format("2006-01-02 15:04 UTC")
	}
	return at.UTC().Format("2006-01-02 15:04:05 UTC")
}

// Day returns the day of a time string of the REST API.
func Day(at string) string {
	day, _, _ := strings.Cut(at, "T")
	return day
}

// Plural returns the singular or plural word for n.
func Plural[N int | int32 | int64](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Thousands formats a number with separated thousands.
func Thousands[N int | int32 | int64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	var out strings.Builder
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			out.WriteByte(',')
		}
		out.WriteRune(digit)
	}
	return out.String()
}

// Sentence turns a message into a sentence: services write messages without capital and period.
func Sentence(message string) string {
	first, length := utf8.DecodeRuneInString(message)
	if length == 0 {
		return ""
	}
	sentence := string(unicode.ToUpper(first)) + message[length:]
	if !strings.HasSuffix(sentence, ".") {
		sentence += "."
	}
	return sentence
}

// labels are the forms' names for the members of a request.
var labels = map[string]string{
	"expires_at": "the end date", "set.expires_at": "the end date", "valid_until": "the end date",
	"reason": "the reason", "set.reason": "the reason", "match": "the expression", "name": "the name",
	"max_findings": "the highest number of matches", "comments": "the comment", "set.comments": "the comment",
	"set.comment": "the comment",
}

// The advice about a status of 429 to programs, and to readers of a page, which shows no headers.
const (
	waitAsTold  = "wait for the number of seconds in the header retry-after"
	waitAMoment = "wait a moment"
)

// Describe returns an error in a request in the words of the form that it came from.
func Describe(failure client.Error) string {
	failure.Detail = strings.Replace(failure.Detail, waitAsTold, waitAMoment, 1)
	rest, isFirst := strings.CutPrefix(failure.Detail, failure.Field)
	label, known := labels[failure.Field]
	if !isFirst || !known {
		return failure.Detail
	}
	return label + strings.TrimSuffix(rest, " and after valid_from") // no form has that field
}

// shortCommit is the length of an abbreviated hash.
const shortCommit = 12

// Commit returns a commit's abbreviated hash.
func Commit(hash string) string {
	if len(hash) > shortCommit {
		return hash[:shortCommit]
	}
	return hash
}
