package policies

import (
	"fmt"
	"testing"
)

func TestCompiledExpressionsAreKeptWithinABound(t *testing.T) {
	c := &compiler{known: map[string]compiled{}, most: 1 << 20}
	first, err := c.compile("true")
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := c.compile("true"); again != first {
		t.Error("an expression is compiled twice")
	}
	if _, err := c.compile("finding.nothing"); err == nil {
		t.Error("a wrong expression compiles")
	}
	for i := range 100 {
		if _, err := c.compile(fmt.Sprintf("finding.path.matches('a{9}%d')", i)); err != nil {
			t.Fatal(err)
		}
		if c.bytes > c.most {
			t.Fatalf("%d bytes are kept after %d expressions", c.bytes, i)
		}
	}
	if again, err := c.compile("true"); err != nil || again == first {
		t.Errorf("what was forgotten is compiled anew: %v", err)
	}
}
