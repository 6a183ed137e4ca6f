package main

import "testing"

func TestThePageNamesTheCollectorsSettings(t *testing.T) {
	for _, c := range []struct {
		set  map[string]string
		want string
	}{
		{nil, "Go's defaults"},
		{map[string]string{"GOMEMLIMIT": "10GiB"}, "`GOMEMLIMIT=10GiB`"},
		{map[string]string{"GOGC": "50", "GOMEMLIMIT": "10GiB"}, "`GOGC=50` and `GOMEMLIMIT=10GiB`"},
	} {
		if got := collectorSettings(func(name string) (string, bool) { v, ok := c.set[name]; return v, ok }); got != c.want {
			t.Errorf("%v: %q, want %q", c.set, got, c.want)
		}
	}
}
