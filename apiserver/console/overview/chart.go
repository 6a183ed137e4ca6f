package overview

import (
	"math"
	"strconv"
	"strings"

	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
)

// The charts are drawn in units of their view box; the style sheet sets their size, and scrolls them if there is no
// room. Everything is distinguished in two ways: by position and by a dash or a word, never by colour alone.
const (
	chartWidth, chartHeight = 680, 240
	plotLeft, plotRight     = 56, 540
	plotTop, plotBottom     = 12, 208
	// labelGap is the least distance of the labels at the lines' ends.
	labelGap = 16
	// steps is the number of horizontal grid lines above 0.
	steps = 4
)

// line is a series of a chart.
type line struct {
	// Name is its label, Class its CSS class.
	Name, Class string
	Values      []int32
}

// tick is a grid line, or a label below the chart.
type tick struct {
	At   int
	Word string
}

// ending is the end of a line, with its label, which is moved if it would cover another.
type ending struct {
	Class, Word string
	X, Y, WordY int
}

// lineChart is the drawing of lines of equal length.
type lineChart struct {
	Paths   []drawn
	Ticks   []tick
	Endings []ending
}

// drawn is an SVG path.
type drawn struct{ Class, D string }

func newLineChart(lines []line) lineChart {
	top := roundUp(greatest(lines))
	c := lineChart{Ticks: ticksTo(top)}
	for _, l := range lines {
		n := len(l.Values)
		if n == 0 {
			continue
		}
		if n > 1 {
			c.Paths = append(c.Paths, drawn{"line " + l.Class, path(l.Values, top)})
		}
		last := l.Values[n-1]
		y := height(last, top)
		c.Endings = append(c.Endings, ending{
			Class: l.Class, Word: l.Name + " " + ui.Thousands(last), X: plotRight, Y: y, WordY: y,
		})
	}
	spread(c.Endings)
	return c
}

// path returns the SVG path through the values, from the left end of the plot to the right.
func path(values []int32, top int32) string {
	var d strings.Builder
	for i, v := range values {
		command := byte('L')
		if i == 0 {
			command = 'M'
		}
		d.WriteByte(command)
		d.WriteString(strconv.Itoa(across(i, len(values))))
		d.WriteByte(' ')
		d.WriteString(strconv.Itoa(height(v, top)))
	}
	return d.String()
}

// across returns the x coordinate of the i-th of n values. A single one is at the right: it is the latest.
func across(i, n int) int {
	if n == 1 {
		return plotRight
	}
	return plotLeft + i*(plotRight-plotLeft)/(n-1)
}

func height(value, top int32) int {
	return plotBottom - int(int64(value)*(plotBottom-plotTop)/int64(top))
}

// greatest returns the largest value, at least 1.
func greatest(lines []line) int32 {
	most := int32(1)
	for _, l := range lines {
		for _, v := range l.Values {
			most = max(most, v)
		}
	}
	return most
}

// roundUp returns a number not below the value that divides into round steps.
func roundUp(value int32) int32 {
	each := float64(value) / steps
	unit := math.Pow(10, math.Floor(math.Log10(each)))
	for _, factor := range []float64{1, 2, 2.5, 5, 10} {
		if part := math.Ceil(unit * factor); part >= each {
			return int32(part) * steps
		}
	}
	return value
}

func ticksTo(top int32) []tick {
	var ticks []tick
	for i := range int32(steps + 1) {
		value := top / steps * i
		ticks = append(ticks, tick{At: height(value, top), Word: ui.Thousands(value)})
	}
	return ticks
}

// spread moves labels apart that would overlap, from the lowest upwards.
func spread(endings []ending) {
	for range endings {
		for i := range endings {
			for k := range endings {
				a, b := &endings[i], &endings[k]
				if i != k && a.WordY <= b.WordY && (a.WordY < b.WordY || i < k) && b.WordY-a.WordY < labelGap {
					a.WordY = b.WordY - labelGap
				}
			}
		}
	}
}

// bar is one of a group of bars.
type bar struct {
	Class, Title        string
	X, Y, Width, Height int
}

// barChart is the drawing of lines as groups of bars.
type barChart struct {
	Bars  []bar
	Ticks []tick
	Names []tick
}

// newBarChart draws a group of bars for each name.
func newBarChart(names []string, lines []line) barChart {
	top := roundUp(greatest(lines))
	c := barChart{Ticks: ticksTo(top)}
	each := (chartWidth - plotLeft) / max(1, len(names))
	width := min(24, (each-8)/max(1, len(lines)))
	for i, name := range names {
		left := plotLeft + i*each + (each-width*len(lines))/2
		c.Names = append(c.Names, tick{At: left + width*len(lines)/2, Word: name})
		for k, l := range lines {
			y := height(l.Values[i], top)
			c.Bars = append(c.Bars, bar{
				Class: l.Class, Title: name + ": " + l.Name + " " + ui.Thousands(l.Values[i]),
				X: left + k*width, Y: y, Width: width - 2, Height: plotBottom - y,
			})
		}
	}
	return c
}
