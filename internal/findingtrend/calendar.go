// Package findingtrend counts findings per day: of one project for the controllers, which store the rows, and of
// several projects together for the REST facade.
//
// It is pure. Days and quarters are in UTC.
package findingtrend

import (
	"fmt"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

const (
	day             = 24 * time.Hour
	monthsOfQuarter = 3
	layout          = "2006-01-02"
)

// Of returns the day of a time.
func Of(t time.Time) v1alpha1.Day { return v1alpha1.Day(t.UTC().Format(layout)) }

// Start returns when a day begins; the zero time for an invalid day.
func Start(of v1alpha1.Day) time.Time {
	t, err := time.Parse(layout, string(of))
	if err != nil {
		return time.Time{}
	}
	return t
}

// Valid reports whether a text is a valid day.
func Valid(of v1alpha1.Day) bool { return !Start(of).IsZero() }

// Plus returns the day that is that many days later.
func Plus(of v1alpha1.Day, days int) v1alpha1.Day { return Of(Start(of).AddDate(0, 0, days)) }

// Days returns the number of days from one day to another; negative if to is earlier.
func Days(from, to v1alpha1.Day) int { return int(Start(to).Sub(Start(from)) / day) }

// QuarterOf returns the quarter of a day.
func QuarterOf(of v1alpha1.Day) v1alpha1.Quarter {
	t := Start(of)
	return v1alpha1.Quarter(fmt.Sprintf("%04dq%d", t.Year(), (int(t.Month())-1)/monthsOfQuarter+1))
}

// EndOf returns when a quarter ends: the start of the next; the zero time for an invalid quarter.
func EndOf(quarter v1alpha1.Quarter) time.Time {
	var year, number int
	if _, err := fmt.Sscanf(string(quarter), "%4dq%1d", &year, &number); err != nil {
		return time.Time{}
	}
	return time.Date(year, time.Month(number*monthsOfQuarter+1), 1, 0, 0, 0, 0, time.UTC)
}
