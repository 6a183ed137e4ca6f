package ui

import (
	"context"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/a-h/templ"

	"github.com/appsec-dev/findings-operator/client"
)

// Figure is a number that a page begins with.
type Figure struct {
	Name  string
	Count int32
	// Link leads to the list of what is counted; empty where there is none.
	Link string
}

// Fact is a line of what is known of something. Without a value it is not shown.
type Fact struct {
	Name, Value string
	// Link leads to what has this value; empty where there is no such list.
	Link string
	// At is shown in place of the value, where it is set.
	At *time.Time
}

// Option is a value that can be chosen, and what it is called.
type Option struct{ Value, Word string }

// Filter is a field of the form above a list: a choice if it has options, else an input.
type Filter struct {
	// Name of the parameter in the page's address.
	Name, Label, Value string
	// Options without the one that filters nothing.
	Options []Option
	// Any is what the option is called that filters nothing.
	Any string
	// Type of the input, "text" by default.
	Type string
}

// Hidden is the type of a field that the form keeps and does not show.
const Hidden = "hidden"

// filtering reports whether one of the fields that the form shows filters.
func filtering(fields []Filter) bool {
	return slices.ContainsFunc(fields, func(f Filter) bool { return f.Value != "" && f.Type != Hidden })
}

// Tab is a link to a list with a name.
type Tab struct {
	Word, Link string
	Current    bool
}

// Tone is what the colour of a badge says. The word of the badge says it too.
type Tone string

// The tones.
const (
	// Plain is for what is neither good nor bad.
	Plain Tone = "plain"
	// Going is for what goes on, or waits for somebody.
	Going Tone = "open"
	// Good is for what is done.
	Good Tone = "good"
	// Bad is for what failed.
	Bad Tone = "bad"
	// Doubt is for what somebody should look at.
	Doubt Tone = "doubt"
)

// Place is a line of a file.
func Place[N int | int32](path string, line N) string {
	if line == 0 {
		return path
	}
	return path + ":" + strconv.Itoa(int(line))
}

// Severity shows how severe something is, in words and in colour.
var Severity = Fixed(severityBadge, "high", "medium", "low")

// Text shows a text, as an expression of a template does. Where there are many it takes half the time: templ formats
// the value of each expression by fmt.
type Text string

// Render implements templ.Component.
func (t Text) Render(_ context.Context, w io.Writer) error {
	_, err := io.WriteString(w, templ.EscapeString(t))
	return err
}

// Fixed makes a part for each of these words once: a list shows them in every row. A part of another word is made anew.
func Fixed(part func(word string) templ.Component, words ...string) func(word string) templ.Component {
	made := map[string]templ.Component{}
	for _, word := range words {
		var out strings.Builder
		if err := part(word).Render(context.Background(), &out); err != nil {
			panic(err) // a builder takes all that is written
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

// Minute is what Time shows of a moment that the REST API has written.
func Minute(at string) string {
	const day, minute = len(time.DateOnly), len("2006-01-02T15:04")
	if len(at) != len("2006-01-02T15:04:05Z") || at[day] != 'T' {
		return at
	}
	return at[:day] + " " + at[day+1:minute] + " UTC"
}

// Plural returns the word for so many.
func Plural[N int | int32 | int64](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Thousands writes a number with its thousands apart.
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

// Sentence is a message as one: services begin and end theirs like a part of one.
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

// labels are what forms call the members of a request.
var labels = map[string]string{
	"expires_at": "the end date", "set.expires_at": "the end date", "valid_until": "the end date",
	"reason": "the reason", "set.reason": "the reason", "match": "the expression", "name": "the name",
	"max_findings": "the highest number of matches", "comments": "the comment", "set.comments": "the comment",
	"set.comment": "the comment",
}

// Told says what was wrong with a request in the words of the form that it came from.
func Told(failure client.Error) string {
	rest, isFirst := strings.CutPrefix(failure.Detail, failure.Field)
	label, known := labels[failure.Field]
	if !isFirst || !known {
		return failure.Detail
	}
	return label + strings.TrimSuffix(rest, " and after valid_from") // which no form gives
}

// shortCommit is as many characters of a hash as providers show.
const shortCommit = 12

// Commit is a commit's hash as people know it.
func Commit(hash string) string {
	if len(hash) > shortCommit {
		return hash[:shortCommit]
	}
	return hash
}
