package overview

import (
	"fmt"
	"slices"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestALineChartHasItsLinesAndTheirLastValues(t *testing.T) {
	c := newLineChart([]line{{"High", "high", []int32{0, 8, 4}}, {"Low", "low", []int32{4, 4, 4}}})
	want := []drawn{{"line high", "M56 208L298 12L540 110"}, {"line low", "M56 110L298 110L540 110"}}
	harness.Same(t, "paths", want, c.Paths)
	var words []string
	for _, e := range c.Endings {
		words = append(words, e.Word)
		harness.Same(t, e.Word, 110, e.Y)
	}
	harness.Same(t, "words", []string{"High 4", "Low 4"}, words)
	if gap := c.Endings[1].WordY - c.Endings[0].WordY; gap < labelGap {
		t.Errorf("the words of equal values are %d apart", gap)
	}
}

func TestOneDayIsAPointAndNoLine(t *testing.T) {
	c := newLineChart([]line{{"High", "high", []int32{3}}})
	if len(c.Paths) != 0 || len(c.Endings) != 1 || c.Endings[0].X != plotRight {
		t.Errorf("drawn of one day: %+v", c)
	}
	if c := newLineChart([]line{{"High", "high", nil}}); len(c.Endings) != 0 {
		t.Errorf("drawn of no day: %+v", c)
	}
}

func TestAChartEndsAboveItsGreatestValueInRoundSteps(t *testing.T) {
	for value, want := range map[int32]int32{1: 4, 4: 4, 5: 8, 9: 12, 30: 40, 41: 80, 100: 100, 101: 200, 99_999: 100_000} {
		harness.Same(t, fmt.Sprint(value), want, roundUp(value))
	}
}

func TestManyWordsAtOneHeightAreApart(t *testing.T) {
	var endings []ending
	for _, y := range []int{200, 200, 199, 60, 201} {
		endings = append(endings, ending{WordY: y})
	}
	spread(endings)
	var at []int
	for _, e := range endings {
		at = append(at, e.WordY)
	}
	slices.Sort(at)
	for i := 1; i < len(at); i++ {
		if at[i]-at[i-1] < labelGap {
			t.Errorf("words at %v", at)
		}
	}
}

func TestBarsStandOnTheGroundAndInsideTheChart(t *testing.T) {
	names := make([]string, 12)
	values := []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	c := newBarChart(names, []line{{"Opened", "opened", values}, {"Closed", "closed", values}, {"Muted", "muted", values}})
	if len(c.Bars) != 36 || len(c.Names) != 12 {
		t.Fatalf("%d bars, %d names", len(c.Bars), len(c.Names))
	}
	for _, b := range c.Bars {
		if b.Y+b.Height != plotBottom || b.X < plotLeft || b.X+b.Width > chartWidth || b.Width < 4 {
			t.Errorf("a bar at %+v", b)
		}
	}
}
