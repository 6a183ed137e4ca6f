package slots

import (
	"errors"
	"testing"
)

func TestOrganizationsWithMoreLeaveRoomToThoseWithFewer(t *testing.T) {
	s := New(8, 4)
	var freed []func()
	takes := func(organization string, want int, because error) {
		t.Helper()
		for got := 0; ; got++ {
			free, err := s.Take(organization)
			if err == nil {
				freed = append(freed, free)
				continue
			}
			if got != want || !errors.Is(err, because) {
				t.Errorf("%s has %d of %d, then %v", organization, got, want, err)
			}
			return
		}
	}
	takes("acme", 4, ErrOrganization)
	takes("globex", 2, ErrTotal)
	takes("initech", 1, ErrTotal)
	takes("umbrella", 1, ErrTotal)
	takes("hooli", 0, ErrTotal)
	for _, free := range freed {
		free()
	}
	if s.InUse() != 0 || len(s.taken) != 0 {
		t.Errorf("%d slots are still taken, by %v", s.InUse(), s.taken)
	}
	takes("hooli", 4, ErrOrganization)
}
