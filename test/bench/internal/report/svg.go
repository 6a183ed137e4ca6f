package report

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// The measures of a picture, in pixels.
const (
	pictureWidth = 760
	labelWidth   = 250
	barHeight    = 16
	barGap       = 4
	groupGap     = 14
	titleHeight  = 30
	margin       = 16
	valueWidth   = 90
)

// palette reads on white and on dark, and for people who see colours differently.
var palette = []string{"#0072b2", "#009e73", "#d55e00", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f"}

// SVG draws the section's charts, one below the other.
func (s *Section) SVG() string {
	var body strings.Builder
	y := margin
	for i := range s.Charts {
		y = s.Charts[i].draw(&body, y) + margin
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12" role="img" aria-label="%s">
<rect width="100%%" height="100%%" fill="#ffffff"/>
%s</svg>
`, pictureWidth, y, pictureWidth, y, html.EscapeString(s.Title), body.String())
}

func (c *Chart) draw(b *strings.Builder, y int) int {
	fmt.Fprintf(b, `<text x="%d" y="%d" font-size="14" font-weight="bold" fill="#222222">%s</text>`+"\n",
		margin, y+14, html.EscapeString(fmt.Sprintf("%s (%s, logarithmic)", c.Title, c.Unit)))
	y += titleHeight
	scale, colours := c.scale(), c.colours()
	for _, group := range c.Groups {
		if group.Name != "" {
			fmt.Fprintf(b, `<text x="%d" y="%d" font-weight="bold" fill="#444444">%s</text>`+"\n", margin, y+12, html.EscapeString(group.Name))
			y += barHeight + barGap
		}
		for _, bar := range group.Bars {
			length := scale(bar.Value)
			fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end" fill="#222222">%s</text>`, labelWidth-8, y+12, html.EscapeString(bar.Name))
			fmt.Fprintf(b, `<rect x="%d" y="%d" width="%.1f" height="%d" rx="2" fill="%s"/>`, labelWidth, y, length, barHeight, colours[bar.Name])
			fmt.Fprintf(b, `<text x="%.1f" y="%d" fill="#222222">%s</text>`+"\n", labelWidth+length+6, y+12, figure(bar.Value))
			y += barHeight + barGap
		}
		y += groupGap
	}
	return y
}

// scale turns a value into a bar's length: the least value is short and can still be seen.
func (c *Chart) scale() func(float64) float64 {
	least, most := math.Inf(1), 0.0
	for _, group := range c.Groups {
		for _, bar := range group.Bars {
			if bar.Value > 0 {
				least, most = min(least, bar.Value), max(most, bar.Value)
			}
		}
	}
	low := math.Log10(least) - 0.3
	span := math.Log10(most) - low
	return func(value float64) float64 {
		if !(value > 0) || !(span > 0) {
			return 1
		}
		return (math.Log10(value) - low) / span * (pictureWidth - labelWidth - valueWidth)
	}
}

func (c *Chart) colours() map[string]string {
	out := map[string]string{}
	for _, group := range c.Groups {
		for _, bar := range group.Bars {
			if _, ok := out[bar.Name]; !ok {
				out[bar.Name] = palette[len(out)%len(palette)]
			}
		}
	}
	return out
}

// figure is short: three digits that count.
func figure(value float64) string {
	switch {
	case value >= 100:
		return fmt.Sprintf("%.0f", value)
	case value >= 10:
		return fmt.Sprintf("%.1f", value)
	default:
		return fmt.Sprintf("%.2f", value)
	}
}
