package uploads

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/slots"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestAnOrganizationHoldsAtMostHalfOfTheMemory(t *testing.T) {
	m := &memory{limits: Limits{Bytes: 100}, taken: map[string]int64{}}
	first, second := &hold{memory: m, organization: "acme"}, &hold{memory: m, organization: "acme"}
	other, third := &hold{memory: m, organization: "globex"}, &hold{memory: m, organization: "initech"}
	for _, step := range []struct {
		by    *hold
		bytes int
		want  error
	}{{first, 40, nil}, {second, 20, errNoShare}, {second, 10, nil}, {other, 50, nil}, {other, 1, nil}, {third, 1, errNoMemory}} {
		if err := step.by.take(step.bytes); !errors.Is(err, step.want) {
			t.Errorf("%s takes %d: got %v, want %v", step.by.organization, step.bytes, err, step.want)
		}
	}
	harness.Same(t, "share of one upload", int64(50), other.taken)
	for _, h := range []*hold{first, second, other, third} {
		h.release()
	}
	if m.all != 0 || len(m.taken) != 0 {
		t.Errorf("%d bytes are still taken, by %v", m.all, m.taken)
	}
}

// Else the others may be refused too, before the parser of the first has ended, and all come again together.
func TestAnUploadThatIsRefusedGivesItsMemoryBackAtOnce(t *testing.T) {
	for want, others := range map[error][]string{errNoShare: {"acme"}, errNoMemory: {"globex", "initech"}} {
		m := &memory{limits: Limits{Bytes: 100}, taken: map[string]int64{}}
		var held []*hold
		for _, organization := range append([]string{"acme"}, others...) {
			held = append(held, &hold{memory: m, organization: organization})
		}
		refused := held[0]
		for _, h := range held[1:] {
			harness.NoError(t, "the first part of another", h.take(35))
		}
		ofOthers := maps.Clone(m.taken)
		harness.NoError(t, "its first part", refused.take(15))
		if err := refused.take(30); !errors.Is(err, want) {
			t.Errorf("its second part: got %v, want %v", err, want)
		}
		harness.Same(t, "what is taken after "+want.Error(), ofOthers, m.taken)
		for _, h := range held {
			h.release()
		}
		harness.Same(t, "bytes that are still taken", int64(0), m.all)
	}
}

// A file in a member of the body is compressed already, and no body with members may be.
func TestABodyThatComesTooSlowlyIsToldWhatHelps(t *testing.T) {
	for inMember, want := range map[bool]string{false: textTooSlow + textCompress, true: textTooSlow} {
		s := &source{inMember: inMember, err: os.ErrDeadlineExceeded}
		refused, _ := errors.AsType[*refusal](s.explain(os.ErrDeadlineExceeded))
		harness.Same(t, "the refusal", problem.InvalidBody(want).Coded(problem.CodeMalformed).Error(), refused.Error())
	}
}

// Two uploads with parts of one scan would close each other's findings.
func TestAFileWithTooManyScansIsToBeSplitBetweenScans(t *testing.T) {
	s := &Service{limits: DefaultLimits, metrics: newMetrics(prometheus.NewRegistry())}
	var runs []string
	for i := range maxScans + 1 {
		runs = append(runs, fmt.Sprintf(`{"tool":{"driver":{"name":"tool%d"}},"results":[]}`, i))
	}
	file := strings.NewReader(`{"version":"2.1.0","runs":[` + strings.Join(runs, ",") + `]}`)
	_, err := s.read(&Request{Body: file}, &hold{memory: &memory{limits: DefaultLimits, taken: map[string]int64{}}})
	harness.ErrorContains(t, "33 tools", err, "keep the results of each scan in one file")
}

// A file of 100,000 empty results has 1.5 MB and takes 200 MB of memory.
func TestSmallResultsAndRulesReserveTheMemoryThatTheyTake(t *testing.T) {
	s := &Service{limits: DefaultLimits, metrics: newMetrics(prometheus.NewRegistry())}
	many := func(entry string) string { return strings.TrimSuffix(strings.Repeat(entry+",", 1_000), ",") }
	for what, run := range map[string]string{
		"results": `"tool":{"driver":{"name":"t"}},"results":[` + many(`{"ruleId":"R"}`) + `]`,
		"rules":   `"tool":{"driver":{"name":"t","rules":[` + many(`{"id":"R"}`) + `]}},"results":[]`,
	} {
		file := `{"version":"2.1.0","runs":[{` + run + `}]}`
		held := &hold{memory: &memory{limits: DefaultLimits, taken: map[string]int64{}}}
		_, err := s.read(&Request{Body: strings.NewReader(file)}, held)
		harness.NoError(t, what, err)
		if least := int64(1_000 * sarif.MinEntry); held.taken < least || held.taken > least+int64(len(file)) {
			t.Errorf("1,000 small %s in a file of %d bytes reserve %d bytes, want %d and what is around them", what, len(file), held.taken, least)
		}
	}
}

// A client of REST may not have the plugin, which takes several files at once.
func TestAFileThatIsTooLargeForAnUploadIsToldWhatHelps(t *testing.T) {
	limits := Limits{Total: 1, PerOrganization: 1, Bytes: 2 << 20}
	s := &Service{limits: limits, metrics: newMetrics(prometheus.NewRegistry())}
	file := strings.NewReader(`{"version":"2.1.0","runs":[],"x":"` + strings.Repeat("x", 2<<20) + `"}`)
	_, err := s.read(&Request{Body: file}, &hold{memory: &memory{limits: limits, taken: map[string]int64{}}})
	harness.ErrorContains(t, "more than half of the memory", err, "the file is refused: larger than 1 MiB: "+textUploadLess)
}

func TestAnUploadWithoutASlotIsRefusedForItsReason(t *testing.T) {
	s := &Service{slots: slots.New(2, 1)}
	for _, step := range []struct {
		organization string
		want         reason
	}{{"acme", ""}, {"acme", reasonOrganizationLimit}, {"globex", ""}, {"initech", reasonReplicaLimit}} {
		_, err := s.takeSlot(step.organization)
		refused, is := errors.AsType[*refusal](err)
		if is != (step.want != "") || is && refused.reason != step.want {
			t.Errorf("%s: got %v, want the reason %q", step.organization, err, step.want)
		}
	}
}
