package harness_test

import (
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

const exposition = "# HELP a_total b\na_total{verb=\"GET\",path=\"/x y\"} 3\na_total{verb=\"PUT\",path=\"/x y\"} 4\na_total_more 9\nbare 1.5e+06\n"

func TestSamplesAreReadWithAndWithoutLabels(t *testing.T) {
	got, err := harness.Samples(exposition, "a_total")
	if err != nil || len(got) != 2 || got[0].Value != 3 || got[0].Labels["path"] != "/x y" {
		t.Errorf("a_total: got %v, %v", got, err)
	}
	got, err = harness.Samples(exposition, "bare")
	if err != nil || len(got) != 1 || got[0].Value != 1_500_000 {
		t.Errorf("bare: got %v, %v", got, err)
	}
	if _, err := harness.Sum(exposition, "absent", nil); err == nil {
		t.Error("a missing metric must be an error: it would count as 0")
	}
}

func TestSumTakesTheSamplesThatHaveTheLabels(t *testing.T) {
	for want, labels := range map[float64]map[string]string{
		7: {"path": "/x y"}, 4: {"path": "/x y", "verb": "PUT"}, 0: {"verb": "POST"},
	} {
		if got, err := harness.Sum(exposition, "a_total", labels); err != nil || got != want {
			t.Errorf("%v: got %v, %v, want %v", labels, got, err, want)
		}
	}
}

func TestValuesHaveTheirLabelsInTheirNames(t *testing.T) {
	got, err := harness.Values(exposition)
	harness.Must(t, err)
	harness.Same(t, "the values", map[string]float64{
		`a_total{verb="GET",path="/x y"}`: 3, `a_total{verb="PUT",path="/x y"}`: 4, "a_total_more": 9, "bare": 1_500_000,
	}, got)
	if _, err := harness.Values("cut-off\n"); err == nil {
		t.Error("a line without a value must be an error")
	}
}
