package ui

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Place formats a line of a file for display.
func Place[N int | int32](path string, line N) string {
	path = Visible(path)
	if line == 0 {
		return path
	}
	return path + ":" + strconv.Itoa(int(line))
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

// shortCommit is the length of an abbreviated hash.
const shortCommit = 12

// Commit returns a commit's abbreviated hash.
func Commit(hash string) string {
	if len(hash) > shortCommit {
		return hash[:shortCommit]
	}
	return hash
}
