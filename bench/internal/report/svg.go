package report

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The measures of a picture.
const (
	pictureWidth = 21 * vg.Centimeter
	rowHeight    = 0.55 * vg.Centimeter
	barWidth     = 0.4 * vg.Centimeter
	// frameHeight is the height of a chart's title and axis.
	frameHeight = 2.2 * vg.Centimeter
	// sans is the typeface of all text.
	sans = "Sans"
	// shortest is the length of the bar of the smallest value, in decades: it remains visible.
	shortest = 0.3
	// room is the space for the figure after the longest bar, as a fraction of its length.
	room = 0.15
)

// palette is readable on white, and for people with colour blindness.
var palette = []color.Color{
	color.RGBA{0x00, 0x72, 0xb2, 0xff}, color.RGBA{0x00, 0x9e, 0x73, 0xff}, color.RGBA{0xd5, 0x5e, 0x00, 0xff},
	color.RGBA{0xcc, 0x79, 0xa7, 0xff}, color.RGBA{0xe6, 0x9f, 0x00, 0xff}, color.RGBA{0x56, 0xb4, 0xe9, 0xff},
	color.RGBA{0x7f, 0x7f, 0x7f, 0xff},
}

// SVG draws the section's charts, one below the other.
func (s *Section) SVG() ([]byte, error) {
	var height vg.Length
	for i := range s.Charts {
		height += s.Charts[i].height()
	}
	picture := vgsvg.New(pictureWidth, max(height, rowHeight))
	area, below := draw.New(picture), height
	for i := range s.Charts {
		p, err := s.Charts[i].plot()
		if err != nil {
			return nil, fmt.Errorf("draw %q: %w", s.Charts[i].Title, err)
		}
		above := height - below
		below -= s.Charts[i].height()
		p.Draw(draw.Crop(area, 0, 0, below, -above))
	}
	var out bytes.Buffer
	_, err := picture.WriteTo(&out)
	return out.Bytes(), err
}

// row is one row of a chart: a group's name, or a bar.
type row struct {
	label string
	bar   *Bar
}

func (c *Chart) rows() []row {
	var out []row
	for _, group := range c.Groups {
		if group.Name != "" {
			out = append(out, row{label: group.Name + ":"})
		}
		for i := range group.Bars {
			out = append(out, row{group.Bars[i].Name, &group.Bars[i]})
		}
	}
	return out
}

func (c *Chart) height() vg.Length { return frameHeight + vg.Length(len(c.rows()))*rowHeight }

// plot draws from top to bottom, while the axis counts upwards.
func (c *Chart) plot() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("%s (%s, logarithmic)", c.Title, c.Unit)
	length, ticks := c.scale()
	p.X.Tick.Marker, p.X.Min = ticks, 0
	rows, colours := c.rows(), map[string]color.Color{}
	names, figures := make([]string, len(rows)), plotter.XYLabels{}
	for i, r := range rows {
		at := len(rows) - 1 - i
		if names[at] = r.label + " "; r.bar == nil {
			continue
		}
		if colours[r.label] == nil {
			colours[r.label] = palette[len(colours)%len(palette)]
		}
		bar, err := plotter.NewBarChart(plotter.Values{length(r.bar.Value)}, barWidth)
		if err != nil {
			return nil, err
		}
		bar.Horizontal, bar.XMin, bar.Color, bar.Width, bar.LineStyle.Width = true, float64(at), colours[r.label], barWidth, 0
		p.Add(bar)
		figures.XYs = append(figures.XYs, plotter.XY{X: length(r.bar.Value), Y: float64(at)})
		figures.Labels = append(figures.Labels, " "+figure(r.bar.Value))
	}
	labels, err := plotter.NewLabels(figures)
	if err != nil {
		return nil, err
	}
	for i := range labels.TextStyle {
		labels.TextStyle[i].YAlign, labels.TextStyle[i].Font.Variant = draw.YCenter, sans
	}
	p.Title.TextStyle.Font.Variant, p.X.Tick.Label.Font.Variant, p.Y.Tick.Label.Font.Variant = sans, sans, sans
	p.Add(labels)
	p.NominalY(names...)
	p.Y.Min, p.Y.Max, p.X.Max = -0.6, float64(len(rows))-0.4, p.X.Max*(1+room)
	return p, nil
}

// scale returns the length of a value's bar, and the ticks at powers of ten. The library's own logarithmic axis
// cannot begin a bar at 0.
func (c *Chart) scale() (length func(float64) float64, ticks plot.ConstantTicks) {
	least, most := math.Inf(1), 0.0
	for _, r := range c.rows() {
		if r.bar != nil && r.bar.Value > 0 {
			least, most = min(least, r.bar.Value), max(most, r.bar.Value)
		}
	}
	if most == 0 {
		return func(float64) float64 { return 0 }, nil
	}
	low := math.Log10(least) - shortest
	for exponent := math.Ceil(low); exponent <= math.Log10(most); exponent++ {
		ticks = append(ticks, plot.Tick{Value: exponent - low, Label: strconv.FormatFloat(math.Pow(10, exponent), 'f', -1,
			64)})
	}
	return func(value float64) float64 {
		if value <= 0 {
			return 0
		}
		return math.Log10(value) - low
	}, ticks
}

// figure formats a value with three significant digits.
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
