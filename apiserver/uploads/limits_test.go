package uploads

import (
	"errors"
	"testing"
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
	if other.taken != 50 {
		t.Errorf("one upload holds %d, more than its share", other.taken)
	}
	for _, h := range []*hold{first, second, other, third} {
		h.release()
	}
	if m.all != 0 || len(m.taken) != 0 {
		t.Errorf("%d bytes are still taken, by %v", m.all, m.taken)
	}
}

func TestOrganizationsWithMoreUploadsLeaveRoomToThoseWithFewer(t *testing.T) {
	s := &slots{limits: Limits{Total: 8, PerOrganization: 4}, taken: map[string]int{}}
	var freed []func()
	takes := func(organization string, want int, because reason) {
		t.Helper()
		for got := 0; ; got++ {
			free, err := s.take(organization)
			if err == nil {
				freed = append(freed, free)
				continue
			}
			var refused *refusal
			if got != want || !errors.As(err, &refused) || refused.reason != because {
				t.Errorf("%s has %d of %d, then %v", organization, got, want, err)
			}
			return
		}
	}
	takes("acme", 4, reasonOrganizationLimit)
	takes("globex", 2, reasonReplicaLimit)
	takes("initech", 1, reasonReplicaLimit)
	takes("umbrella", 1, reasonReplicaLimit)
	takes("hooli", 0, reasonReplicaLimit)
	for _, free := range freed {
		free()
	}
	if s.all != 0 || len(s.taken) != 0 {
		t.Errorf("%d slots are still taken, by %v", s.all, s.taken)
	}
	takes("hooli", 4, reasonOrganizationLimit)
}
